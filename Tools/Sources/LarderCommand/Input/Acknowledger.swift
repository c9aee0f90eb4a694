import Larder

/// Tells, commit by commit, how much of an import is durable.
struct Acknowledger<Store: DataStore> {
  private let store: Store
  private let output: ByteOutput

  /// Makes an acknowledger.
  ///
  /// - Parameters:
  ///   - store: What is imported into.
  ///   - output: Where the numbers go.
  /// - Throws: ``CommandFailure`` where nothing in the store is ever durable.
  init(store: Store, output: ByteOutput) throws(CommandFailure) {
    guard store.information.acknowledgement != .volatile else {
      throw CommandFailure(.usage, "nothing in this store is durable", advice: "Leave out --acknowledge.")
    }
    self.store = store
    self.output = output
  }

  /// Makes what was committed durable, where it is not yet, and prints how much that is.
  ///
  /// - Parameter count: How many entries were committed.
  /// - Throws: What the store throws; ``CommandFailure`` where the number cannot be printed.
  func acknowledge(_ count: Int) async throws {
    if store.information.acknowledgement != .durable { try await store.synchronize() }
    do {
      try output.writeLine("\(count)")
      try output.flush()
    } catch {
      // Unlike where a listing is cut short, what was asked for is not done.
      throw CommandFailure(
        .inputOutput, "standard output cannot be written: \(error.error.message)",
        advice: "Imported so far: \(EntryCount.text(count)).")
    }
  }
}
