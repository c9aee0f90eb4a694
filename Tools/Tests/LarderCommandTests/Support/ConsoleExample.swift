/// A command in a `console` block of a page, with its output.
struct ConsoleExample {
  /// The shell command after the `$`.
  let command: String

  /// The lines below the command, which it prints on either stream, each with its end.
  let output: String

  /// Returns the examples of a page of Markdown in their order.
  static func examples(in page: String) -> [ConsoleExample] {
    var examples: [ConsoleExample] = []
    var isWithinBlock = false
    for line in page.split(separator: "\n", omittingEmptySubsequences: false) {
      if line.hasPrefix("```") {
        isWithinBlock = line == "```console"
      } else if isWithinBlock, line.hasPrefix("$ ") {
        examples.append(ConsoleExample(command: String(line.dropFirst(2)), output: ""))
      } else if isWithinBlock, let last = examples.popLast() {
        examples.append(ConsoleExample(command: last.command, output: "\(last.output)\(line)\n"))
      }
    }
    return examples
  }

  /// Returns a text with its times and rates replaced by zero.
  static func withoutTimes(_ text: String) -> String {
    text.replacing(/\d+\.\d s/, with: "0.0 s").replacing(/\(\d+\/s\)/, with: "(0/s)")
  }
}
