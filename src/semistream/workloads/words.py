"""The vocabulary of the retail tables: a few invented words, combined into many names."""

from __future__ import annotations


def _words(text: str) -> list[str]:
    return text.split()


KINDS = _words(
    "Basic Bright Classic Compact Deluxe Eco Folding Heavy Light Mini Outdoor Pro Safe Slim Soft Travel Ultra Vintage"
)
MATERIALS = _words("Bamboo Ceramic Copper Cotton Glass Jute Leather Linen Oak Rubber Steel Wool")
NOUNS = _words(
    "Bag Basket Belt Blanket Bottle Bowl Box Brush Chair Clock Cup Curtain Desk Frame Glove Hammer Hook Jacket Jug Kettle "
    "Ladder Lamp Mat Mirror Mug Pan Pillow Plate Rack Rope Rug Scarf Shelf Spoon Stool Table Towel Tray Vase Wallet"
)
SIZES = ["XS", "S", "M", "L", "XL", "0.5 l", "1 l", "20 cm", "45 cm", "90 cm", "2 pcs", "Größe 38"]
CATEGORIES = _words("Bath Bedroom Clothing Garden Hobby Kids Kitchen Living Office Sport Tools Travel")
BRANDS = [
    first + last
    for first in _words("Al Bren Cor Dun El Fal Gar Hal Is Kor Lor Mar Nor Or Pel Ros Sel Tor Val Wen")
    for last in _words("by dane field gard holm ia ko lund mere nova port rell stad tex ura vik")
]
VENDORS = [f"{brand} {form}" for form in ("Trading", "& Sons", "Supply Co.") for brand in BRANDS]
CHANNELS = ["web", "app", "store", "web", "app", "phone", "web", "app", "web", None]
_PRAISE = [
    "Made to last.",
    "Easy to clean.",
    "Ships flat.",
    "A quiet favourite.",
    "Best in its class.",
    "For everyday use.",
]
_ADVICE = [
    "Keep dry.",
    "Wash at 30 degrees.",
    "Not for children under three.",
    "Five-year guarantee.",
    "Spare parts fit.",
]
DESCRIPTIONS = [f"{praise} {advice}" for praise in _PRAISE for advice in _ADVICE] + [None] * 12
