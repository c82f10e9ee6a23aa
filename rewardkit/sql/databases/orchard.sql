-- A database of our own, for the packaged samples.
CREATE TABLE tree (id INTEGER PRIMARY KEY, kind TEXT, variety TEXT, planted INTEGER, field TEXT);
CREATE TABLE harvest (tree_id INTEGER REFERENCES tree (id), year INTEGER, kilos REAL, grade TEXT);
CREATE TABLE buyer (id INTEGER PRIMARY KEY, name TEXT, town TEXT, pays REAL);
INSERT INTO tree VALUES (1, 'apple', 'Boskoop', 1995, 'A'), (2, 'apple', 'Topaz', 2010, 'A'), (3, 'pear', 'Conference', 2001, 'B'), (4, 'plum', 'Victoria', 2012, 'B'), (5, 'apple', 'Boskoop', 1996, 'C'), (6, 'cherry', 'Kordia', 2016, 'C'), (7, 'pear', 'Comice', 1989, 'C');
INSERT INTO harvest VALUES (1, 2022, 81.5, 'I'), (1, 2023, 64.0, 'II'), (2, 2022, 38.2, 'I'), (2, 2023, 45.0, 'I'), (3, 2022, 52.4, 'I'), (3, 2023, 12.0, 'III'), (4, 2023, 27.7, 'I'), (5, 2022, 90.0, 'II'), (5, 2023, 88.0, 'I'), (7, 2022, 33.3, 'II'), (7, 2023, 30.1, 'I');
INSERT INTO buyer VALUES (1, 'Lund Cider', 'Aske', 0.45), (2, 'Market hall', 'Brede', 1.2), (3, 'Odin School', 'Aske', 0.9), (4, 'Jam works', 'Holm', 0.6);
