/// A command in a `console` block of a page, with what it prints.
struct ConsoleExample {
  /// The line of shell behind the `$`.
  let command: String

  /// What stands below it, on either stream, each line with its end.
  let output: String

  /// The examples of a page of Markdown, in the order in which they stand.
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

  /// A text with the times and rates in it made the same everywhere.
  static func withoutTimes(_ text: String) -> String {
    text.replacing(/\d+\.\d s/, with: "0.0 s").replacing(/\(\d+\/s\)/, with: "(0/s)")
  }
}
