// Answers calls by the example of docs/receiving.md that is compiled with it.
package main

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"strings"
)

func main() {
	names := []string{"webhook-id", "webhook-timestamp", "webhook-signature"}
	input := bufio.NewScanner(os.Stdin)
	input.Buffer(nil, 1<<24)
	for input.Scan() {
		fields := strings.Split(input.Text(), "\t")
		headers := http.Header{}
		for nr, name := range names {
			if fields[nr+1] != "-" {
				headers.Set(name, fields[nr+1])
			}
		}
		body, err := base64.StdEncoding.DecodeString(fields[4])
		if err == nil && IsGenuine(fields[0], headers, body) {
			fmt.Println("accepted")
		} else {
			fmt.Println("refused")
		}
	}
}
