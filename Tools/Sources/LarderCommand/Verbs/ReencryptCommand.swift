import ArgumentParser
import Larder
import StoreAccess

/// `larder reencrypt`.
struct ReencryptCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "reencrypt",
    abstract: "Encrypt the values of a store again that need another key than the primary one.",
    discussion: """
      Prints one object with examined, failed and cursor at the end. Values that are encrypted with the primary key are not \
      written. Other programs can use the store in the meantime. A value that cannot be read stays as it is; its reason is \
      printed on standard error, and the verb exits with 65.

      After an interruption, run the verb again, or continue after the cursor that --progress printed last.

        larder keyring rotate file:keys.json
        larder reencrypt lmdb:users --key-ring file:keys.json --purpose users
      """)

  @OptionGroup var store: StoreArgument
  @Option(help: ArgumentHelp("The cursor after which to continue.", valueName: "cursor")) var after: String?
  @Flag(help: "Print the object after each 256 entries too.") var progress = false
  @OptionGroup var range: RangeOptions

  func validate() throws {
    guard store.opening.keyRing != nil else {
      throw ValidationError("--key-ring and --purpose are missing")
    }
  }

  func run() async throws {
    let (keys, cursor) = (try range.range(), try after.map { try PageCursor($0) })
    // The bytes that are encrypted stay as they are, with the version and the deadline of each value.
    let outcome = try await StoreSession.runEncoded(store.target, access: .readWrite, decrypts: true) {
      opened, output in
      guard opened.queue == nil else {
        // An update of an item ends its lease.
        throw CommandFailure(
          .usage, "the items of a queue are not encrypted again",
          advice: "Keep their key until all of them have left the queue.")
      }
      let outcome = try await opened.store.reencrypt(in: keys, after: cursor) { state in
        if progress { try output.writeLine { append(state, to: &$0) } }
      }
      try output.writeLine { append(outcome, to: &$0) }
      return outcome
    }
    for failure in outcome.failures { Diagnostics.writeLine("larder: \(CommandFailure(failure).message)") }
    guard outcome.failureCount == 0 else {
      throw CommandFailure(.badData, "\(EntryCount.text(outcome.failureCount)) could not be encrypted again")
    }
  }

  private func append(_ state: RewriteProgress, to bytes: inout [UInt8]) {
    let cursor = state.cursor.map { "\(JSONText(string: $0.text))" } ?? "null"
    bytes += "{\"examined\":\(state.examinedCount),\"failed\":\(state.failureCount),\"cursor\":\(cursor)}".utf8
  }
}
