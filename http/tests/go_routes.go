// Records how Go's ServeMux answers: go run go_routes.go > go_routes.txt   (Go 1.23 or newer)
//
// Made-up sets of patterns, and requests for each. go_routes_test.cpp expects the same of Router, but for what http/router.h says.
package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
)

const (
	sets        = 300
	perSet      = 12
	patternsMax = 6
)

var random = rand.New(rand.NewPCG(1, 2))

func pick(words ...string) string { return words[random.IntN(len(words))] }

// {1} and so on get their names from their places, so that no pattern has one twice.
func pattern() string {
	text := pick("", "", "", "GET ", "GET ", "POST ", "HEAD ") + pick("", "", "", "", "h.example")
	for i := range random.IntN(4) {
		text += "/" + pick("a", "b", "a", "b%20c", fmt.Sprintf("{x%d}", i), fmt.Sprintf("{x%d}", i))
	}
	return text + pick("", "", "/", "/", "/{$}", "/{rest...}")
}

func target() string {
	text := ""
	for range 1 + random.IntN(3) {
		text += "/" + pick("a", "b", "a", "b", "c", "b%20c", "a%2Fb", "", ".", "..", "x+y", "%41")
	}
	return text + pick("", "", "/")
}

// Answers with its pattern and its values, in a header that HEAD gets, too.
func answer(pattern string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		text := fmt.Sprintf("%q", pattern)
		for _, name := range []string{"x0", "x1", "x2", "rest"} {
			if strings.Contains(pattern, "{"+name) {
				text += fmt.Sprintf(" %s=%q", name, r.PathValue(name))
			}
		}
		w.Header().Set("X-Answer", text)
	}
}

// What the panic of a pattern says, if there is one.
func handle(mux *http.ServeMux, pattern string) (refusal string) {
	defer func() {
		if why := recover(); why != nil {
			refusal = fmt.Sprint(why)
		}
	}()
	mux.Handle(pattern, answer(pattern))
	return ""
}

func say(mux *http.ServeMux, method, host, target string) string {
	r := httptest.NewRequest(method, target, nil)
	r.Host = host
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	switch {
	case w.Code >= 300 && w.Code < 400:
		return "redirect " + w.Header().Get("Location")
	case w.Code == http.StatusMethodNotAllowed:
		allowed := strings.Split(w.Header().Get("Allow"), ", ")
		slices.Sort(allowed)
		return "405 " + strings.Join(allowed, ",")
	case w.Code == http.StatusOK:
		return "200 " + w.Header().Get("X-Answer")
	}
	return fmt.Sprint(w.Code)
}

func main() {
	fmt.Printf("# Answers of %s; made by go_routes.go. A set: its patterns; + taken, - refused; then its requests.\n", runtime.Version())
	for range sets {
		fmt.Println("set")
		mux := http.NewServeMux()
		for range 1 + random.IntN(patternsMax) {
			text := pattern()
			if !strings.Contains(text, "/") {
				text += "/"
			}
			refusal := handle(mux, text)
			if refusal == "" {
				fmt.Printf("+\t%s\n", text)
				continue
			}
			_, other, _ := strings.Cut(refusal, "conflicts with pattern \"")
			other, _, _ = strings.Cut(other, "\"")
			fmt.Printf("-\t%s\t%s\n", text, other)
		}
		for range perSet {
			method, host, text := pick("GET", "GET", "POST", "HEAD", "DELETE"), pick("h.example", "h.example:80", "other.example"), target()
			fmt.Printf("?\t%s\t%s\t%s\t%s\n", method, host, text, say(mux, method, host, text))
		}
	}
}
