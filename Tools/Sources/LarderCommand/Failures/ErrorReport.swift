import ArgumentParser
import Larder
import LarderCrypto
import StoreAccess

/// The message and the exit code with which the tool reports an error.
struct ErrorReport: Equatable {
  /// The exit code.
  let status: Int32

  /// The line for standard error; `nil` for no message.
  let line: String?

  /// Creates the report of an error.
  ///
  /// - Parameters:
  ///   - error: The error that parsing the command line or running a verb threw.
  ///   - arguments: The command line, for a hint if it is invalid.
  init(_ error: any Error, arguments: [String]) {
    switch error {
    case let status as ExitStatus:
      self.init(status: status.rawValue, line: nil)
    case let code as ExitCode:
      self.init(status: code.rawValue, line: nil)
    case let failure as CommandFailure:
      self.init(failure)
    case let error as StoreError:
      self.init(CommandFailure(error))
    case let error as KeyRingError:
      self.init(CommandFailure(error))
    case let output as BrokenOutput where output.isReaderGone:
      // As with `| head -1`: the reader has seen enough, which is not a failure.
      self.init(status: ExitStatus.done.rawValue, line: nil)
    case let output as BrokenOutput:
      self.init(CommandFailure(.inputOutput, "cannot write to standard output: \(output.error.message)"))
    case is CancellationError:
      self.init(CommandFailure(.internalFailure, "cancelled"))
    default:
      let status = LarderCommand.exitCode(for: error).rawValue
      let message = LarderCommand.message(for: error)
      guard status == ExitStatus.usage.rawValue else {
        self.init(CommandFailure(.internalFailure, message))
        return
      }
      let verb = LarderCommand.verb(in: arguments)
      let help = (["larder"] + (verb?.words ?? []) + ["--help"]).joined(separator: " ")
      let hint = verb.flatMap { ErrorReport.hint(on: message, of: $0.verb, arguments: arguments) }
      let advice = [hint, "See `\(help)`."].compactMap(\.self).joined(separator: " ")
      self.init(CommandFailure(.usage, message.withoutOptionSuggestion.trimmingSuffix("."), advice: advice))
    }
  }

  /// Returns a hint if an option is misspelled, or if a key or value starts with -.
  private static func hint(
    on message: String, of verb: any ParsableCommand.Type, arguments: [String]
  ) -> String? {
    if message.hasPrefix("Missing value for"), let option = message.firstMatch(of: /--[a-z-]+/)?.output,
      arguments.drop(while: { $0 != option }).dropFirst().first?.hasPrefix("-") == true
    {
      return "Put = before a value that starts with -, as in \(option)=-x."
    }
    guard message.hasPrefix("Unknown option") || message.hasPrefix("Missing expected argument"),
      !arguments.contains("--")
    else { return nil }
    // The parser takes such a key or value for an option, which is unknown or leaves an argument missing.
    let options = Set(LarderCommand.helpMessage(for: verb).matches(of: /--?[a-z-]+/).map { String($0.output) })
    let unknown = arguments.filter { $0.hasPrefix("-") }.map { String($0.prefix { $0 != "=" }) }
      .filter { !options.contains($0) }
    let longOptions = options.filter { $0.hasPrefix("--") }.sorted()
    let meant = unknown.filter { $0.hasPrefix("--") }
      .compactMap { Spelling.nearest(to: $0, among: longOptions) }
    if let option = meant.first { return "Did you mean '\(option)'?" }
    return unknown.isEmpty ? nil : "Put -- before a key or value that starts with -."
  }

  private init(_ failure: CommandFailure) {
    self.init(status: failure.status.rawValue, line: "larder: \(failure.message)")
  }

  private init(status: Int32, line: String?) {
    self.status = status
    self.line = line
  }
}

extension String {
  /// The message without the suggestion of the argument parser, which counts a swap of two letters as two edits.
  fileprivate var withoutOptionSuggestion: String {
    guard hasPrefix("Unknown option"), let suggestion = firstRange(of: ". Did you mean") else { return self }
    return String(self[..<suggestion.lowerBound])
  }

  /// Returns the string without a suffix, if it has it.
  func trimmingSuffix(_ suffix: String) -> String {
    hasSuffix(suffix) ? String(dropLast(suffix.count)) : self
  }
}
