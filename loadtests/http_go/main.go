// The Go server of the scenarios `tls` and `churn`: GET /plaintext by net/http, as its documentation shows it.
package main

import (
	"crypto/tls"
	"flag"
	"log"
	"net/http"
)

var body = []byte("Hello, World!")

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "where to listen")
	certificate := flag.String("cert", "", "certificate chain (PEM); with it, HTTPS")
	key := flag.String("key", "", "private key (PEM)")
	flag.Parse()

	http.HandleFunc("/plaintext", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Write(body)
	})
	// HTTP/1.1 only, as the others: a map that is not nil switches HTTP/2 off.
	server := &http.Server{Addr: *addr, TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){}}
	if *certificate == "" {
		log.Fatal(server.ListenAndServe())
	}
	log.Fatal(server.ListenAndServeTLS(*certificate, *key))
}
