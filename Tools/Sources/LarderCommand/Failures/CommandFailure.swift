import Larder

/// Why the tool fails: what it says in one line, and what it ends with.
struct CommandFailure: Error, Equatable {
  /// What it ends with.
  let status: ExitStatus

  /// What went wrong and what to do next, in one line, without the name of the tool.
  let message: String

  /// Describes a failure.
  ///
  /// - Parameters:
  ///   - status: What the tool ends with.
  ///   - message: What went wrong.
  ///   - advice: What to do next, as a sentence; none unless given.
  init(_ status: ExitStatus, _ message: String, advice: String? = nil) {
    self.status = status
    let end = message.hasSuffix("?") ? "" : "."
    self.message = (advice.map { "\(message)\(end) \($0)" } ?? message).inOneLine
  }

  /// Describes what a store threw.
  ///
  /// - Parameters:
  ///   - error: What it threw.
  ///   - hint: A sentence behind the advice that the kind of failure brings along; none unless given.
  init(_ error: StoreError, hint: String? = nil) {
    var (status, advice) = CommandFailure.meaning(of: error.code)
    // A store that cannot be opened as it is, with several names, say, or too large, is no mistake on the command line.
    if error.code == .unsupported, error.operation == .open {
      (status, advice) = (.badData, "The file was left as it is.")
    }
    var message = error.fullMessage
    if !error.store.isEmpty { message = "\(error.store)\(error.store.hasSuffix(":") ? "" : ":") \(message)" }
    // In full: whoever reads this typed the key, or may read the store.
    if let key = error.key { message += " (key \(key))" }
    if error.outcome == .unknown { message += " (whether the change took effect is unknown)" }
    let sentences = [advice, hint].compactMap(\.self)
    self.init(status, message, advice: sentences.isEmpty ? nil : sentences.joined(separator: " "))
  }

  /// What the code of a store's error means to who uses the tool.
  ///
  /// - Returns: What the tool ends with, and what to do next where there is something to say.
  static func meaning(of code: StoreError.Code) -> (status: ExitStatus, advice: String?) {
    switch code {
    case .invalidKey, .invalidArgument, .unsupported: (.usage, nil)
    case .notFound:
      (
        .noInput,
        "Check the URL; only set, import, copy, bench and queue enqueue make a store, and none makes the folder above it."
      )
    case .corrupted: (.badData, "`larder verify` lists what is damaged.")
    case .unrecognizedFormat: (.badData, "Check the path; the file was left as it is.")
    case .versionMismatch: (.badData, "Use the version or program that wrote it; the file was left as it is.")
    case .valueTooLarge, .encodingFailed: (.badData, nil)
    case .locked: (.tryAgain, "Close the other program, or try again.")
    case .timedOut: (.tryAgain, "Try again.")
    case .notPermitted: (.notPermitted, "Check the permissions of the file and of its folder.")
    case .full: (.inputOutput, "Make room and try again.")
    case .ioFailed: (.inputOutput, "Check the disk and the path.")
    default: (.internalFailure, nil)
    }
  }
}
