// A shop's webhook endpoint in one file of plain Go: verifies each notification and prints it.
//
//	WEBHOOK_SECRET=whsec_... go run docs/examples/receiver.go 9000
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	tolerance   = 5 * time.Minute
	largestBody = 1_000_000
)

var (
	key  []byte
	seen sync.Map
)

// keyOf: `whsec_` is followed by the key in base64; any other text is the key itself.
func keyOf(secret string) ([]byte, error) {
	if encoded, found := strings.CutPrefix(secret, "whsec_"); found {
		return base64.StdEncoding.DecodeString(encoded)
	}
	return []byte(secret), nil
}

// isGenuine verifies the raw bytes before anything parses them.
// While a secret is renewed there are two signatures.
func isGenuine(headers http.Header, body []byte) bool {
	id, sentAt := headers.Get("webhook-id"), headers.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(sentAt, 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > tolerance {
		return false
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", id, sentAt, body)
	expected := []byte("v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	for _, signature := range strings.Fields(headers.Get("webhook-signature")) {
		if hmac.Equal(expected, []byte(signature)) {
			return true
		}
	}
	return false
}

func receive(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, largestBody))
	if err != nil || !isGenuine(r.Header, body) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Println("refused")
		return
	}
	var message struct {
		Event   string
		EventID string `json:"event_id"`
		Data    json.RawMessage
	}
	if json.Unmarshal(body, &message) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	// Yours is a table in which event_id is unique: store first, answer, and work from there.
	_, isRepeat := seen.LoadOrStore(message.EventID, true)
	w.WriteHeader(http.StatusNoContent)
	if !isRepeat {
		fmt.Printf("genuine %s %s\n", message.Event, message.Data)
	}
}

func main() {
	var err error
	key, err = keyOf(os.Getenv("WEBHOOK_SECRET"))
	if len(os.Args) != 2 || err != nil || len(key) == 0 {
		log.Fatal("usage: WEBHOOK_SECRET=whsec_... go run receiver.go PORT")
	}
	server := &http.Server{
		Addr:        "127.0.0.1:" + os.Args[1],
		Handler:     http.HandlerFunc(receive),
		ReadTimeout: 10 * time.Second,
	}
	fmt.Println("listening on http://" + server.Addr)
	log.Fatal(server.ListenAndServe())
}
