// The program structure of examples/hostile.cpp in Go, for comparison: the same paths, the same /stats. The work is
// like that of examples/hostile/work.h, not the same, so its iterations compare with nothing but themselves.
//
// A goroutine of Go's changes threads as it computes, so that no clock counts its CPU time: burners do as
// many steps as took `ms` at the start, when nothing else ran.
//
//	stall_go -addr 127.0.0.1:8080
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"regexp"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	msMax     = 600_000
	bytesMax  = 16 << 30
	fileBytes = 32 << 20
	readBytes = 64 << 10
	copyBytes = 256 << 10
	fromBytes = 8 << 20
)

// The steps: each call is some 20 us of CPU, and belongs to one request.

func scramble(x uint64, rounds int) uint64 {
	for i := 0; i < rounds; i++ {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

func newBurn() func() uint64 {
	state := uint64(1)
	return func() uint64 {
		state = scramble(state, 8000)
		return state
	}
}

func newMalloc() func() uint64 {
	state := uint64(1)
	return func() uint64 {
		sum := uint64(0)
		var blocks [64][]byte
		for i := range blocks {
			state = scramble(state, 1)
			blocks[i] = make([]byte, 16<<(state%11))
			blocks[i][0] = byte(state)
		}
		for _, block := range blocks {
			sum += uint64(block[0])
		}
		return sum
	}
}

var copyFrom = bytes.Repeat([]byte{'x'}, fromBytes)

func newMemcpy() func() uint64 {
	into := make([]byte, copyBytes)
	from := 0
	return func() uint64 {
		copy(into, copyFrom[from:from+copyBytes])
		from = (from + copyBytes) % fromBytes
		return uint64(into[from%copyBytes])
	}
}

func newSort() func() uint64 {
	numbers := make([]uint32, 128)
	state := uint64(1)
	return func() uint64 {
		for i := range numbers {
			state = scramble(state, 1)
			numbers[i] = uint32(state)
		}
		sort.Slice(numbers, func(a, b int) bool {
			return scramble(uint64(numbers[a])+1, 8) < scramble(uint64(numbers[b])+1, 8)
		})
		return uint64(numbers[0])
	}
}

var address = regexp.MustCompile(`([a-z.]+)@([a-z]+)\.(com|org|net)`)

const text = "Among many words that are not what is looked for, such as these.ones or at@no or a@b.xyz, " +
	"there is at last some.body@example.org"

func newRegex() func() uint64 {
	return func() uint64 { return uint64(address.FindStringIndex(text)[0]) }
}

// What has been done of a kind, by all requests.
type kind struct {
	name                             string
	newStep                          func() func() uint64 // nil: no burner
	stepsPerMs                       float64
	begun, ended, iterations, errors uint64
}

var (
	kinds = []*kind{
		{name: "burn", newStep: newBurn}, {name: "malloc", newStep: newMalloc},
		{name: "memcpy", newStep: newMemcpy}, {name: "sort", newStep: newSort},
		{name: "regex", newStep: newRegex}, {name: "sleep"}, {name: "file"},
	}
	sink uint64 // takes results, so that the work is not left out
	file *os.File
)

func (k *kind) calibrate() {
	step, sum, n := k.newStep(), uint64(0), 0
	for i := 0; i < 20; i++ {
		sum += step()
	}
	start := time.Now()
	for time.Since(start) < 20*time.Millisecond {
		sum += step()
		n++
	}
	k.stepsPerMs = float64(n) / (time.Since(start).Seconds() * 1000)
	atomic.AddUint64(&sink, sum)
}

func (k *kind) burn(ms int) uint64 {
	step, sum := k.newStep(), uint64(0)
	n := uint64(float64(ms) * k.stepsPerMs)
	for i := uint64(0); i < n; i++ {
		sum += step()
		atomic.AddUint64(&k.iterations, 1)
	}
	atomic.AddUint64(&sink, sum)
	return n
}

// A plain system call: time.Sleep would not block a thread.
func (k *kind) sleep(ms int) uint64 {
	left := syscall.NsecToTimespec(int64(ms) * 1e6)
	for syscall.Nanosleep(&left, &left) == syscall.EINTR {
	}
	atomic.AddUint64(&k.iterations, 1)
	return 1
}

func (k *kind) read(amount int, cold bool) (uint64, error) {
	source, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
	if err != nil {
		return 0, err
	}
	defer source.Close()
	buffer := make([]byte, readBytes)
	n := uint64(0)
	for position := fileBytes; amount > 0; n++ {
		if position >= fileBytes {
			position = 0
			if _, err := source.Seek(0, io.SeekStart); err != nil {
				return n, err
			}
			if cold {
				const dontNeed = 4
				syscall.Syscall6(syscall.SYS_FADVISE64, source.Fd(), 0, 0, dontNeed, 0, 0)
			}
		}
		got, err := source.Read(buffer)
		if err != nil {
			return n, err
		}
		position += got
		amount -= got
		atomic.AddUint64(&k.iterations, 1)
	}
	return n, nil
}

func number(w http.ResponseWriter, r *http.Request, name string, max int) (int, bool) {
	value, err := strconv.Atoi(r.URL.Query().Get(name))
	if err != nil || value < 0 || value > max {
		http.Error(w, fmt.Sprintf("%s must be a number from 0 to %d", name, max), http.StatusBadRequest)
		return 0, false
	}
	return value, true
}

func (k *kind) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, max := "ms", msMax
	if k.name == "file" {
		name, max = "bytes", bytesMax
	}
	amount, ok := number(w, r, name, max)
	if !ok {
		return
	}
	start := time.Now()
	var iterations, errors uint64
	atomic.AddUint64(&k.begun, 1)
	switch {
	case k.newStep != nil:
		iterations = k.burn(amount)
	case k.name == "sleep":
		iterations = k.sleep(amount)
	default:
		var err error
		if iterations, err = k.read(amount, r.URL.Query().Get("cold") == "1"); err != nil {
			errors = 1
			atomic.AddUint64(&k.errors, 1)
			w.WriteHeader(http.StatusInternalServerError)
		}
	}
	atomic.AddUint64(&k.ended, 1)
	wall := float64(time.Since(start).Nanoseconds()) / 1e6
	send(w, fmt.Sprintf(`{"kind":"%s","wall_ms":%.3f,"iterations":%d,"eintr":0,"errors":%d}`,
		k.name, wall, iterations, errors))
}

// How late a goroutine is that wants to run every millisecond; ticks that passed meanwhile count each.
type ticker struct {
	mutex  sync.Mutex
	lateUs []float64
	next   time.Time
}

func (t *ticker) run() {
	t.next = time.Now()
	for {
		t.mutex.Lock()
		t.next = t.next.Add(time.Millisecond)
		next := t.next
		t.mutex.Unlock()
		time.Sleep(time.Until(next))
		late := float64(time.Since(next).Nanoseconds()) / 1000
		t.mutex.Lock()
		t.lateUs = append(t.lateUs, late)
		t.mutex.Unlock()
	}
}

func (t *ticker) stats(reset bool) map[string]float64 {
	t.mutex.Lock()
	late := append([]float64(nil), t.lateUs...)
	now := time.Now()
	for tick := t.next; !reset && !tick.After(now); tick = tick.Add(time.Millisecond) {
		late = append(late, float64(now.Sub(tick).Nanoseconds())/1000)
	}
	if reset {
		t.lateUs = t.lateUs[:0]
	}
	t.mutex.Unlock()
	sort.Float64s(late)
	at := func(share float64) float64 {
		if len(late) == 0 {
			return 0
		}
		return late[int(share*float64(len(late)-1))]
	}
	return map[string]float64{"count": float64(len(late)), "p50_us": at(0.5), "p99_us": at(0.99),
		"p999_us": at(0.999), "max_us": at(1)}
}

var (
	ticks   ticker
	started = time.Now()
)

func stats(w http.ResponseWriter, r *http.Request) {
	counts := map[string]map[string]uint64{}
	for _, k := range kinds {
		counts[k.name] = map[string]uint64{"begun": atomic.LoadUint64(&k.begun), "ended": atomic.LoadUint64(&k.ended),
			"iterations": atomic.LoadUint64(&k.iterations), "eintr": 0, "errors": atomic.LoadUint64(&k.errors)}
	}
	text, err := json.Marshal(map[string]any{"seconds": time.Since(started).Seconds(), "kinds": counts,
		"ticker": ticks.stats(r.URL.Query().Get("reset") == "1")})
	if err != nil {
		log.Fatal(err)
	}
	send(w, string(text))
}

func send(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	io.WriteString(w, body)
}

func makeFile() error {
	var err error
	if file, err = os.CreateTemp("", "stall-go-"); err != nil {
		return err
	}
	os.Remove(file.Name())
	if _, err = file.Write(make([]byte, fileBytes)); err != nil {
		return err
	}
	return file.Sync() // only what is on the disk can be dropped from the cache
}

func main() {
	listen := flag.String("addr", "127.0.0.1:8080", "address to serve on")
	flag.Parse()
	if err := makeFile(); err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	for _, k := range kinds {
		if k.newStep != nil {
			k.calibrate()
		}
		mux.Handle("/"+k.name, k)
	}
	mux.HandleFunc("/stats", stats)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { send(w, "Hello, World!") })
	go ticks.run()
	server := &http.Server{Addr: *listen, Handler: mux}
	go func() {
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, syscall.SIGTERM, syscall.SIGINT)
		<-asked
		patience, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		server.Shutdown(patience)
		os.Exit(0)
	}()
	log.Fatal(server.ListenAndServe())
}
