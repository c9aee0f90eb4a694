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
      let verb = arguments.first { LarderCommand.verbs.contains($0) }
      let help = verb.map { "larder \($0) --help" } ?? "larder --help"
      // A key or value that starts with - is taken for an option, which is unknown or leaves an argument missing.
      let isDashTaken = !arguments.contains("--") && arguments.contains { $0.hasPrefix("-") }
      let isAboutArguments = message.hasPrefix("Unknown option") || message.hasPrefix("Missing expected argument")
      let hint = isDashTaken && isAboutArguments ? " A key or value that starts with - goes after --." : ""
      self.init(CommandFailure(.usage, message.trimmingSuffix("."), advice: "See `\(help)`.\(hint)"))
    }
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
