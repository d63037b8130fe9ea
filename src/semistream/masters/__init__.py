"""Master tables on disk: where rows come from, the folder of versions, building, reading, and SQLite tables in place.

source -> build -> folder of versions -> pages -> disk buffer of a join
"""
