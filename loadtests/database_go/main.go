// The server of the scenario `database` in Go, with database/sql and Debian's driver lib/pq: main -addr HOST:PORT [-prepared]
//
// Does what loadtests/database_server.cpp does. -prepared: one statement is prepared at the start and kept, as careful programs do;
// otherwise each query is prepared, run and closed by the driver, as programs do that call db.Query.
package main

import (
	"database/sql"
	"flag"
	"fmt"
	"log"
	"net/http"
	"strconv"
	"strings"

	_ "github.com/lib/pq"
)

const query = "SELECT id, title, body FROM notes WHERE id = $1"

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "address to listen on")
	prepared := flag.Bool("prepared", false, "prepare the statement once")
	flag.Parse()
	db, err := sql.Open("postgres", "sslmode=disable")
	if err != nil {
		log.Fatal(err)
	}
	db.SetMaxOpenConns(16)
	db.SetMaxIdleConns(16)
	var statement *sql.Stmt
	if *prepared {
		if statement, err = db.Prepare(query); err != nil {
			log.Fatal(err)
		}
	}
	http.HandleFunc("/notes/", func(w http.ResponseWriter, r *http.Request) {
		id, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/notes/"))
		if err != nil {
			http.NotFound(w, r)
			return
		}
		var row *sql.Row
		if statement != nil {
			row = statement.QueryRowContext(r.Context(), id)
		} else {
			row = db.QueryRowContext(r.Context(), query, id)
		}
		var number int64
		var title, body string
		if err := row.Scan(&number, &title, &body); err != nil {
			http.Error(w, err.Error(), 500)
			return
		}
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprintf(w, "%d %s %s", number, title, body)
	})
	log.Fatal(http.ListenAndServe(*addr, nil))
}
