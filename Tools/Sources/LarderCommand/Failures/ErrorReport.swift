import ArgumentParser
import Larder

/// What an error makes the tool say and end with.
struct ErrorReport: Equatable {
  /// What the tool ends with.
  let status: Int32

  /// The line on standard error, or `nil` where there is nothing to say.
  let line: String?

  /// Decides what to do about an error.
  ///
  /// - Parameters:
  ///   - error: What was thrown by reading the command line or by a verb.
  ///   - arguments: The command line, for a hint where it makes no sense.
  init(_ error: any Error, arguments: [String]) {
    switch error {
    case let status as ExitStatus:
      self.init(status: status.rawValue, line: nil)
    case let failure as CommandFailure:
      self.init(failure)
    case let error as StoreError:
      self.init(CommandFailure(error))
    case let output as BrokenOutput where output.isReaderGone:
      // As with `| head -1`: who reads has seen enough, which is no failure.
      self.init(status: ExitStatus.done.rawValue, line: nil)
    case let output as BrokenOutput:
      self.init(CommandFailure(.inputOutput, "standard output cannot be written: \(output.error.message)"))
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
      self.init(CommandFailure(.usage, message.trimmingSuffix("."), advice: advice))
    }
  }

  /// What to do about a key or value that starts with -, where that is what went wrong.
  private static func hint(
    on message: String, of verb: any ParsableCommand.Type, arguments: [String]
  ) -> String? {
    if message.hasPrefix("Missing value for"), let option = message.firstMatch(of: /--[a-z-]+/)?.output,
      arguments.drop(while: { $0 != option }).dropFirst().first?.hasPrefix("-") == true
    {
      return "A value that starts with - goes behind =, as in \(option)=-x."
    }
    guard message.hasPrefix("Unknown option") || message.hasPrefix("Missing expected argument"),
      !arguments.contains("--")
    else { return nil }
    // Such a key or value is taken for an option, which is unknown or leaves an argument missing.
    let options = Set(LarderCommand.helpMessage(for: verb).matches(of: /--?[a-z-]+/).map { String($0.output) })
    let isDashTaken = arguments.contains { argument in
      argument.hasPrefix("-") && !options.contains(String(argument.prefix { $0 != "=" }))
    }
    return isDashTaken ? "A key or value that starts with - goes after --." : nil
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
  fileprivate func trimmingSuffix(_ suffix: String) -> String {
    hasSuffix(suffix) ? String(dropLast(suffix.count)) : self
  }
}
