// SPDX-License-Identifier: Apache-2.0

// A client in Go for the tests of real guests: its own resolver, its own TLS, no library of the system's.
// fetch URL prints what a server answers to the bearer of $TOKEN; a long body is sent before, in chunks.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

func ask(method, url string, body io.Reader) {
	request, err := http.NewRequest(method, url, body)
	if err == nil {
		request.Header.Set("Authorization", "Bearer "+os.Getenv("TOKEN"))
		var answer *http.Response
		answer, err = http.DefaultClient.Do(request)
		if err == nil {
			defer answer.Body.Close()
			text, _ := io.ReadAll(answer.Body)
			fmt.Printf("%d %s\n", answer.StatusCode, strings.TrimSpace(string(text)))
		}
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// A reader of which net/http does not know the length.
type chunks struct{ io.Reader }

func main() {
	ask("GET", os.Args[1], nil)
	ask("POST", os.Args[1], chunks{strings.NewReader(strings.Repeat("chunk", 40000))})
}
