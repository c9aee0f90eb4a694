import ArgumentParser

/// The command-line tool `larder`.
@main
struct LarderCommand: AsyncParsableCommand {
  /// The version of the tool.
  static let version = "0.1.0"

  static let configuration = CommandConfiguration(
    commandName: "larder",
    abstract: "Look into and work on stores of Larder.",
    discussion: """
      A store is named by a URL, a scheme and a place. The place is taken as it is:

      \(Stores.listing)

      Values are JSON. Keys are text, or hexadecimal with --key-hex. \
      What starts with - goes after --, and the value of an option behind =, as in --prefix=-x.

        larder set json:users.json ada '{"name":"Ada"}'
        larder get json:users.json ada
        larder list json:users.json --prefix a --limit 20

      With --metrics every verb tells on standard error what it asked of the store, how often, and how long it took.

      It ends with:

      \(statusListing)

      Completions for your shell: larder --generate-completion-script bash (or zsh, or fish).
      """,
    version: version,
    subcommands: [
      GetCommand.self, SetCommand.self, RemoveCommand.self, ClearCommand.self, ListCommand.self, CountCommand.self,
      StoresCommand.self,
      ImportCommand.self, ExportCommand.self, CopyCommand.self, StatCommand.self, VerifyCommand.self,
      SalvageCommand.self, CompactCommand.self, BackupCommand.self, PurgeCommand.self, BenchCommand.self,
      QueueCommand.self,
    ])

  private static var statusListing: String {
    ExitStatus.allCases.map { status in
      let number = "\(status.rawValue)"
      return "  \(String(repeating: " ", count: 2 - number.count))\(number)  \(status.summary)"
    }.joined(separator: "\n")
  }

  /// Runs the tool, and ends it with an ``ExitStatus``.
  static func main() async {
    Descriptor.reserveStandardStreams()
    Descriptor.ignorePipeSignal()
    let arguments = Array(CommandLine.arguments.dropFirst())
    do {
      try checkThatArgumentsAreText()
      try checkVerb(in: arguments)
      let command = try parseAsRoot(arguments)
      if var command = command as? any AsyncParsableCommand {
        try await command.run()
      } else {
        var command = command
        try command.run()
      }
    } catch {
      end(with: error, arguments: arguments)
    }
  }

  /// The names of the verbs.
  static var verbs: [String] { names(of: configuration.subcommands) }

  /// The names of the verbs in a group of them; none where it is no group.
  static func verbs(of group: String) -> [String] {
    verb(in: [group]).map { names(of: $0.verb.configuration.subcommands) } ?? []
  }

  /// The verb that a command line names, with the group that it belongs to, as far as there are such.
  ///
  /// - Parameter arguments: The command line.
  /// - Returns: Its words, like `["queue", "receive"]`, and the innermost of the verbs; `nil` where it names none.
  static func verb(in arguments: [String]) -> (words: [String], verb: any ParsableCommand.Type)? {
    var words: [String] = []
    var verb: any ParsableCommand.Type = LarderCommand.self
    for argument in arguments {
      guard let inner = verb.configuration.subcommands.first(where: { $0.configuration.commandName == argument }) else {
        // What begins with - may stand before a verb.
        if argument.hasPrefix("-") { continue } else { break }
      }
      words.append(argument)
      verb = inner
    }
    return words.isEmpty ? nil : (words, verb)
  }

  private static func names(of verbs: [any ParsableCommand.Type]) -> [String] {
    verbs.compactMap { $0.configuration.commandName }
  }

  /// Refuses arguments that are not UTF-8: Swift would mend them, and another key or file would be meant.
  private static func checkThatArgumentsAreText() throws {
    for index in 1..<max(1, Int(CommandLine.argc)) {
      guard let argument = CommandLine.unsafeArgv[index], String(validatingCString: argument) == nil else { continue }
      throw ValidationError("Argument \(index) is not UTF-8; a key that is not is given in digits, with --key-hex")
    }
  }

  /// Refuses a verb that there is not, which the help would pass over.
  ///
  /// - Throws: `ValidationError`.
  static func checkVerb(in arguments: [String]) throws {
    let isHelp = arguments.first == "help"
    let words = (isHelp ? arguments.dropFirst() : arguments[...]).prefix { !$0.hasPrefix("-") }
    var known: [any ParsableCommand.Type] = configuration.subcommands
    for word in words {
      guard let verb = known.first(where: { $0.configuration.commandName == word }) else {
        // What follows a verb are its arguments; help has none.
        if known.isEmpty && !isHelp || word == "help" { return }
        let name = VerbSuggestion.verb(for: word, among: names(of: known))
        throw ValidationError("Unexpected argument '\(word)'" + (name.map { ". Did you mean '\($0)'?" } ?? ""))
      }
      known = verb.configuration.subcommands
    }
  }

  private static func end(with error: any Error, arguments: [String]) -> Never {
    // Help, the version and completion scripts come as errors, too.
    guard exitCode(for: error) != .success else {
      let output = ByteOutput()
      do {
        try output.writeLine(fullMessage(for: error))
        try output.flush()
      } catch {
        end(with: error, arguments: arguments)
      }
      Self.exit(withError: nil)
    }
    let report = ErrorReport(error, arguments: arguments)
    if let line = report.line { Diagnostics.writeLine(line) }
    Self.exit(withError: ExitCode(report.status))
  }
}
