CREATE OR REPLACE TEMP TABLE no_rows (
  key VARCHAR, same_as VARCHAR, source VARCHAR, record VARCHAR, updated VARCHAR, ids VARCHAR[],
  title VARCHAR, year SMALLINT, authors VARCHAR[], pages VARCHAR, type VARCHAR, is_retracted BOOLEAN, oa_status VARCHAR,
  copies STRUCT(url VARCHAR, kind VARCHAR, page VARCHAR, host_type VARCHAR, license VARCHAR, version VARCHAR,
    evidence VARCHAR, location VARCHAR, checksum VARCHAR)[]
);
CREATE OR REPLACE TEMP TABLE changed (source VARCHAR, record VARCHAR);
CREATE OR REPLACE TEMP TABLE deleted (name VARCHAR);
