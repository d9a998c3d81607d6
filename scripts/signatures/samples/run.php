<?php
// Answers calls by the example of docs/receiving.md that lies in the working directory.
require getcwd() . '/example.php';

$names = ['webhook-id', 'webhook-timestamp', 'webhook-signature'];
while (($line = fgets(STDIN)) !== false) {
    $fields = explode("\t", rtrim($line, "\n"));
    $headers = [];
    foreach ($names as $nr => $name) {
        if ($fields[$nr + 1] !== '-') {
            $headers[$name] = $fields[$nr + 1];
        }
    }
    try {
        $answer = is_genuine($fields[0], $headers, base64_decode($fields[4]));
    } catch (Throwable $refused) {
        $answer = false;
    }
    echo $answer ? "accepted\n" : "refused\n";
}
