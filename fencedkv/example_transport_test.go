package fencedkv_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// The store is open in one process, and the holders of the lock are others: the
// token travels with each request, in its text form.
func Example_overHTTP() {
	store, remove := openScratch()
	defer remove()

	// The process that has the store.
	handler := func(w http.ResponseWriter, r *http.Request) {
		token, err := fence.Parse(r.Header.Get("Fencing-Token"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		value, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		err = store.Resource(r.PathValue("name")).Put(r.Context(), token, []byte("balance"), value)
		var rejected *fence.RejectedError
		switch {
		case errors.As(err, &rejected):
			http.Error(w, rejected.Error(), http.StatusConflict)
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /accounts/{name}", handler)
	server := httptest.NewServer(mux)
	defer server.Close()

	// A holder, with the token of its lease: lease.Token().
	put := func(token fence.Token, balance string) {
		request, err := http.NewRequest("PUT", server.URL+"/accounts/42", strings.NewReader(balance))
		if err != nil {
			log.Fatal(err)
		}
		request.Header.Set("Fencing-Token", token.String())
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			log.Fatal(err)
		}
		defer response.Body.Close()
		fmt.Println(token, response.Status)
	}
	put(fence.Token{Lineage: "etcd:8b2c:accounts/42", Seq: 34, Holder: "b"}, "80")
	put(fence.Token{Lineage: "etcd:8b2c:accounts/42", Seq: 33, Holder: "a"}, "70")
	// Output:
	// 34@etcd:8b2c:accounts/42~b 200 OK
	// 33@etcd:8b2c:accounts/42~a 409 Conflict
}
