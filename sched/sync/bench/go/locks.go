// Go's locks, measured as sched/sync/bench/lock_bench.cpp measures Tuza's, under the same names:
//
//	go run sched/sync/bench/go/locks.go
package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"
)

// goroutines of them call body b.N times in all; one call is one operation.
func share(b *testing.B, goroutines int, body func()) {
	var group sync.WaitGroup
	for g := 0; g < goroutines; g++ {
		count := b.N / goroutines
		if g < b.N%goroutines {
			count++
		}
		group.Add(1)
		go func() {
			defer group.Done()
			for i := 0; i < count; i++ {
				body()
			}
		}()
	}
	group.Wait()
}

func mutex(goroutines int) func(*testing.B) {
	return func(b *testing.B) {
		var lock sync.Mutex
		counter := 0
		share(b, goroutines, func() {
			lock.Lock()
			counter++
			lock.Unlock()
		})
		if counter != b.N {
			b.Fatal("the lock did not exclude")
		}
	}
}

func readers(goroutines int) func(*testing.B) {
	return func(b *testing.B) {
		var lock sync.RWMutex
		value := 1
		share(b, goroutines, func() {
			lock.RLock()
			seen := value
			lock.RUnlock()
			if seen != 1 {
				panic("a reader saw what nobody wrote")
			}
		})
	}
}

func writers(goroutines int) func(*testing.B) {
	return func(b *testing.B) {
		var lock sync.RWMutex
		counter := 0
		share(b, goroutines, func() {
			lock.Lock()
			counter++
			lock.Unlock()
		})
		if counter != b.N {
			b.Fatal("the lock did not exclude")
		}
	}
}

func condRoundTrip(b *testing.B) {
	var lock sync.Mutex
	changed := sync.NewCond(&lock)
	turn := 0
	play := func(parity int) {
		lock.Lock()
		defer lock.Unlock()
		for i := 0; i < b.N; i++ {
			for turn%2 != parity {
				changed.Wait()
			}
			turn++
			changed.Signal()
		}
	}
	var group sync.WaitGroup
	group.Add(1)
	go func() {
		defer group.Done()
		play(0)
	}()
	play(1)
	group.Wait()
}

func main() {
	fmt.Printf("# %s\n", runtime.Version())
	for _, bench := range []struct {
		name string
		run  func(*testing.B)
	}{
		{"BM_MutexUncontended", mutex(1)},
		{"BM_MutexContended8", mutex(8)},
		{"BM_RWMutexReadUncontended", readers(1)},
		{"BM_RWMutexRead8", readers(8)},
		{"BM_RWMutexWrite8", writers(8)},
		{"BM_CondRoundTrip", condRoundTrip},
	} {
		if len(os.Args) > 1 && os.Args[1] != bench.name {
			continue
		}
		for _, procs := range []int{1, 2} {
			runtime.GOMAXPROCS(procs)
			result := testing.Benchmark(bench.run)
			fmt.Printf("%-32s %8.1f ns\n", fmt.Sprintf("%s/P:%d", bench.name, procs),
				float64(result.T.Nanoseconds())/float64(result.N))
		}
	}
}
