// Answers calls by the example of docs/receiving.md that is compiled with it.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;

final class Run {
  public static void main(String[] arguments) throws Exception {
    String[] names = {"webhook-id", "webhook-timestamp", "webhook-signature"};
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      String[] fields = line.split("\t", -1);
      Map<String, String> headers = new HashMap<>();
      for (int nr = 0; nr < names.length; nr++) {
        if (!fields[nr + 1].equals("-")) headers.put(names[nr], fields[nr + 1]);
      }
      boolean answer = false;
      try {
        answer = Webhooks.isGenuine(fields[0], headers, Base64.getDecoder().decode(fields[4]));
      } catch (Exception refused) {
        // What throws does not accept.
      }
      System.out.println(answer ? "accepted" : "refused");
    }
  }
}
