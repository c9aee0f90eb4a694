import ArgumentParser
import StoreAccess

/// The command-line tool `larder`.
@main
struct LarderCommand: AsyncParsableCommand {
  /// The version of the tool.
  static let version = "0.1.0"

  static let configuration = CommandConfiguration(
    commandName: "larder",
    abstract: "Inspect and edit Larder stores.",
    discussion: """
      A store is named by a URL: a scheme, a colon and a location. Locations need no escaping:

      \(Stores.listing)

      Values are JSON. Keys are text, or hexadecimal with --key-hex. Put -- before keys and values that start with -, \
      and = before such values of options, as in --prefix=-x.

        larder set json:users.json ada '{"name":"Ada"}'
        larder get json:users.json ada
        larder list json:users.json --prefix a --limit 20

      With --config and a JSON or YAML file, a store can be the name of a stack in it; see larder stack --help.

      With --metrics, a verb reports the store operations that it made on standard error, with their counts and \
      latencies.

      Exit codes:

      \(statusListing)

      To complete verbs and options in your shell: larder --generate-completion-script bash (or zsh, or fish).
      """,
    version: version,
    subcommands: [
      CreateCommand.self, GetCommand.self, SetCommand.self, EditCommand.self, RemoveCommand.self, ClearCommand.self,
      ListCommand.self,
      CountCommand.self,
      SampleCommand.self, InspectCommand.self, WatchCommand.self, StoresCommand.self, StackCommand.self,
      ImportCommand.self, ExportCommand.self, CopyCommand.self, DiffCommand.self, StatCommand.self, VerifyCommand.self,
      SalvageCommand.self, MigrateCommand.self, CompactCommand.self, BackupCommand.self, RestoreCommand.self,
      PurgeCommand.self,
      BenchCommand.self,
      KeyRingCommand.self, ReencryptCommand.self, QueueCommand.self, HTTPCommand.self,
    ])

  private static var statusListing: String {
    ExitStatus.allCases.map { status in
      let number = "\(status.rawValue)"
      return "  \(String(repeating: " ", count: 2 - number.count))\(number)  \(status.summary)"
    }.joined(separator: "\n")
  }

  /// Runs the tool and ends the process with an ``ExitStatus``.
  static func main() async {
    Descriptor.reserveStandardStreams()
    Descriptor.ignorePipeSignal()
    var arguments = Array(CommandLine.arguments.dropFirst())
    do {
      try checkThatArgumentsAreText()
      arguments = try ConfiguredStacks.take(from: arguments)
      if arguments.isEmpty { throw CleanExit.message(Overview.text) }
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

  /// Returns the names of the verbs in a group, or an empty array if the words name no group.
  ///
  /// - Parameter words: The words of the group, such as `["queue", "dead"]`.
  static func verbs(of words: [String]) -> [String] {
    verb(in: words).map { names(of: $0.verb.configuration.subcommands) } ?? []
  }

  /// Returns the verb that a command line names, with the names of the groups around it.
  ///
  /// - Parameter arguments: The command line.
  /// - Returns: The words, such as `["queue", "receive"]`, and the innermost verb; `nil` if the command line names no
  ///   verb.
  static func verb(in arguments: [String]) -> (words: [String], verb: any ParsableCommand.Type)? {
    var words: [String] = []
    var verb: any ParsableCommand.Type = LarderCommand.self
    for argument in arguments {
      guard let inner = verb.configuration.subcommands.first(where: { $0.configuration.commandName == argument }) else {
        // Options can precede a verb.
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

  /// Refuses arguments that are not UTF-8, which Swift would repair so that they name another key or file.
  private static func checkThatArgumentsAreText() throws {
    for index in 1..<max(1, Int(CommandLine.argc)) {
      guard let argument = CommandLine.unsafeArgv[index], String(validatingCString: argument) == nil else { continue }
      throw ValidationError(
        "argument \(index) is not valid UTF-8; pass binary keys in hexadecimal with --key-hex")
    }
  }

  /// Refuses an unknown verb, which the argument parser ignores when it prints help.
  ///
  /// - Throws: `ValidationError`.
  static func checkVerb(in arguments: [String]) throws {
    let isHelp = arguments.first == "help"
    let words = (isHelp ? arguments.dropFirst() : arguments[...]).prefix { !$0.hasPrefix("-") }
    var known: [any ParsableCommand.Type] = configuration.subcommands
    for word in words {
      guard let verb = known.first(where: { $0.configuration.commandName == word }) else {
        // The words after a verb are its arguments. Help has none.
        if known.isEmpty && !isHelp || word == "help" { return }
        let name = VerbSuggestion.verb(for: word, among: names(of: known))
        throw ValidationError("Unexpected argument '\(word)'" + (name.map { ". Did you mean '\($0)'?" } ?? ""))
      }
      known = verb.configuration.subcommands
    }
  }

  private static func end(with error: any Error, arguments: [String]) -> Never {
    // The argument parser throws help, the version and completion scripts as errors, too.
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
