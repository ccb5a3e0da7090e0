// The Go client of the scenario `client`: goroutines that ask one server for one path by net/http, as its documentation
// shows it, and check each answer. Prints what loadtests/client_load.cpp prints.
package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

const warmUp = time.Second

var answered atomic.Uint64

func ask(client *http.Client, url, want string) {
	for {
		response, err := client.Get(url)
		if err != nil {
			log.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != 200 || string(body) != want {
			log.Fatalf("a wrong answer: %v, %d, %q", err, response.StatusCode, body)
		}
		answered.Add(1)
	}
}

func seconds(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }

func cpuTime() (user, system float64) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		log.Fatal(err)
	}
	return seconds(usage.Utime), seconds(usage.Stime)
}

func main() {
	if len(os.Args) != 5 {
		log.Fatal("usage: client_go URL BODY CONNECTIONS SECONDS")
	}
	connections, _ := strconv.Atoi(os.Args[3])
	length, _ := strconv.Atoi(os.Args[4])
	// The default keeps two connections per host: with 256 it would measure dialling.
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = connections, connections
	client := &http.Client{Transport: transport}
	for i := 0; i < connections; i++ {
		go ask(client, os.Args[1], os.Args[2])
	}
	time.Sleep(warmUp)
	user, system := cpuTime()
	before, start := answered.Load(), time.Now()
	time.Sleep(time.Duration(length) * time.Second)
	userAfter, systemAfter := cpuTime()
	requests := answered.Load() - before
	fmt.Printf("{\"requests\": %d, \"seconds\": %.6f, \"user_s\": %.6f, \"system_s\": %.6f}\n", requests,
		time.Since(start).Seconds(), userAfter-user, systemAfter-system)
}
