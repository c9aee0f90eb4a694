package import Larder
package import LarderCrypto
import LarderPostgres
import LarderSQLite

/// A failure of the tool: the line that it prints and its exit code.
package struct CommandFailure: Error, Equatable {
  /// The exit code.
  package let status: ExitStatus

  /// One line that says what went wrong and what to do next, without the name of the tool.
  package let message: String

  /// Creates a failure.
  ///
  /// - Parameters:
  ///   - status: The exit code.
  ///   - message: The reason.
  ///   - advice: A sentence that says what to do next. Defaults to `nil`.
  package init(_ status: ExitStatus, _ message: String, advice: String? = nil) {
    self.status = status
    let end = message.hasSuffix("?") ? "" : "."
    self.message = (advice.map { "\(message)\(end) \($0)" } ?? message).inOneLine
  }

  /// Returns the failure for a destination that must have no entries.
  ///
  /// - Parameter url: The URL of the destination.
  package static func hasEntries(_ url: String) -> CommandFailure {
    CommandFailure(
      .usage, "\(url) already has entries",
      advice: "Give a store that does not exist yet, or remove its entries with larder clear.")
  }

  /// Creates the failure for an error of a store.
  ///
  /// - Parameters:
  ///   - error: The error.
  ///   - hint: A sentence to add to the advice for the error's code. Defaults to `nil`.
  package init(_ error: StoreError, hint: String? = nil) {
    var (status, advice) = CommandFailure.meaning(of: error.code)
    // If a store cannot be opened as it is, for example because of hard links or its size, the command line is right.
    if error.code == .unsupported, error.operation == .open {
      (status, advice) = (.badData, "The file was left unchanged.")
    }
    // A database refuses a change by its own rules, too, not only by the permissions of a file.
    switch error.underlying {
    case let cause as SQLiteError where error.code == .notPermitted && cause.isRefusalOfSchema:
      advice = "Look for a trigger, a constraint or an index of the table that refuses the change."
    case is PostgresError: advice = CommandFailure.serverAdvice(for: error.code) ?? advice
    // The message of an LMDB file of another version already says how to read it.
    case _ where error.code == .versionMismatch && error.message.contains("larder migrate"):
      advice = "The file was left unchanged."
    default: break
    }
    var message = error.fullMessage
    if !error.store.isEmpty { message = "\(error.store)\(error.store.hasSuffix(":") ? "" : ":") \(message)" }
    // Not redacted: the reader of the message typed the key, or may read the store.
    if let key = error.key { message += " (key \(key))" }
    if error.outcome == .unknown { message += " (whether the change took effect is unknown)" }
    let sentences = [advice, hint].compactMap(\.self)
    self.init(status, message, advice: sentences.isEmpty ? nil : sentences.joined(separator: " "))
  }

  /// Returns the meaning of a store's error code for the user of the tool.
  ///
  /// - Returns: The exit code, and advice on what to do next, if there is any.
  package static func meaning(of code: StoreError.Code) -> (status: ExitStatus, advice: String?) {
    switch code {
    case .invalidKey, .invalidArgument, .unsupported: (.usage, nil)
    case .notFound:
      (
        .noInput,
        "Check the URL. Only create, set, import, copy, salvage, bench, queue enqueue and queue move create a store, and none creates its parent folder."
      )
    case .corrupted: (.badData, "`larder verify` lists the damage.")
    case .undecodable: (.badData, nil)
    case .unrecognizedFormat: (.badData, "Check the path; the file was left unchanged.")
    case .versionMismatch: (.badData, "Use the version or program that wrote it; the file was left unchanged.")
    case .valueTooLarge, .encodingFailed: (.badData, nil)
    case .keyUnavailable: (.notPermitted, "Give the key ring of the values with --key-ring and --purpose.")
    case .locked: (.tryAgain, "Close the other program, or try again.")
    case .timedOut: (.tryAgain, "Try again.")
    // Another program has changed the files, or the table, while the verb had them open.
    case .conflict: (.tryAgain, nil)
    case .notPermitted: (.notPermitted, "Check the permissions of the file and of its folder.")
    case .full: (.inputOutput, "Free some space and try again.")
    case .ioFailed: (.inputOutput, "Check the disk and the path.")
    default: (.internalFailure, nil)
    }
  }

  /// Returns advice for an error of a server, which has no file that the user could look at.
  private static func serverAdvice(for code: StoreError.Code) -> String? {
    switch code {
    case .notPermitted: "Check the rights of the role, and the triggers and constraints of the table."
    case .ioFailed: "Check the server and the connection."
    case .full: "Free some space on the server and try again."
    case .corrupted: "See the log of the server."
    default: nil
    }
  }

  /// Creates the failure for an error of a key ring.
  package init(_ error: KeyRingError) {
    let (status, advice): (ExitStatus, String?) =
      switch error.code {
      case .notFound:
        (
          .noInput,
          "If values were encrypted with one, restore it from a copy. For a first start, `larder keyring create` creates it."
        )
      case .unavailable, .changed: (.tryAgain, "Try again when the place of the keys is unlocked and in reach.")
      case .wrongPassword, .notPermitted: (.notPermitted, nil)
      case .corrupted, .full: (.badData, nil)
      case .readOnly, .invalidArgument, .unsupported: (.usage, nil)
      default: (.inputOutput, nil)
      }
    self.init(status, error.code == .notFound ? "there is no key ring" : error.message, advice: advice)
  }

  /// Returns the failure of an operation that requires a store whose values expire.
  ///
  /// - Parameters:
  ///   - store: The name of the store.
  ///   - advice: A sentence that says what to do instead.
  package static func plainValues(in store: String, advice: String) -> CommandFailure {
    CommandFailure(
      .usage, "\(store) holds values that do not expire, because it was created without --ttl", advice: advice)
  }
}

extension SQLiteError {
  /// A Boolean value that indicates whether the schema refused a change: `SQLITE_ERROR`, as for an unknown function in
  /// an index, or `SQLITE_CONSTRAINT`.
  fileprivate var isRefusalOfSchema: Bool { [1, 19].contains(code & 0xFF) }
}

extension StoreError {
  /// The message, followed by the underlying error unless the message includes it.
  package var fullMessage: String {
    guard let cause = underlying.map({ "\($0)" }), !message.contains(cause) else { return message }
    return "\(message) (\(cause))"
  }
}
