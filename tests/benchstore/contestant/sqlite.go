package contestant

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite" // the driver
)

type sqliteStore struct {
	db       *sql.DB
	put, get *sql.Stmt
}

// OpenSQLite is an Open: a write-ahead log that every commit syncs. It has one
// connection, because SQLite has one writer and a second one would poll.
func OpenSQLite(dir string) (Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	pragmas := url.Values{"_pragma": {"journal_mode(WAL)", "synchronous(FULL)"}}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "sqlite.db")+"?"+pragmas.Encode())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	s := &sqliteStore{db: db}
	if err := s.prepare(); err != nil {
		db.Close()
		return nil, err
	}
	return s, nil
}

func (s *sqliteStore) prepare() (err error) {
	if _, err = s.db.Exec(`CREATE TABLE IF NOT EXISTS kv (k BLOB PRIMARY KEY, v BLOB NOT NULL) WITHOUT ROWID`); err != nil {
		return err
	}
	if s.put, err = s.db.Prepare(`INSERT INTO kv (k, v) VALUES (?, ?) ON CONFLICT (k) DO UPDATE SET v = excluded.v`); err != nil {
		return err
	}
	s.get, err = s.db.Prepare(`SELECT v FROM kv WHERE k = ?`)
	return err
}

func (s *sqliteStore) Put(ctx context.Context, key Key, value []byte) error {
	_, err := s.put.ExecContext(ctx, key.Whole, value)
	return err
}

func (s *sqliteStore) Get(ctx context.Context, key Key) (value []byte, err error) {
	err = s.get.QueryRowContext(ctx, key.Whole).Scan(&value)
	if errors.Is(err, sql.ErrNoRows) {
		err = missing(key)
	}
	return value, err
}

func (s *sqliteStore) Load(ctx context.Context, pairs []Pair) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // does nothing after Commit
	put := tx.StmtContext(ctx, s.put)
	for _, p := range pairs {
		if _, err := put.ExecContext(ctx, p.Key.Whole, p.Value); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func (s *sqliteStore) Close() error { return errors.Join(s.put.Close(), s.get.Close(), s.db.Close()) }
