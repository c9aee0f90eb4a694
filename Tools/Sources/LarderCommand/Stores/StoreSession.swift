import Larder

/// The time for which a verb has a store open.
enum StoreSession {
  /// Opens a store, does something with it, and closes it whatever happens.
  ///
  /// - Parameters:
  ///   - url: Where the store is.
  ///   - createsIfMissing: Whether a store that is not there is made.
  ///   - body: Gets the store and where to print to; what it prints is flushed behind it.
  /// - Returns: What `body` returned.
  /// - Throws: The first of what opening, `body`, flushing and closing threw; that nobody reads the output any more
  ///   counts only where nothing else went wrong.
  static func run<Result>(
    _ url: String,
    createsIfMissing: Bool,
    _ body: (AnyDataStore<JSONText>, ByteOutput) async throws -> Result
  ) async throws -> Result {
    let store = try await Stores.open(url, createsIfMissing: createsIfMissing)
    let output = ByteOutput()
    var result: Result?
    var errors: [any Error] = []
    do {
      result = try await body(store, output)
    } catch {
      errors.append(error)
    }
    do {
      // After an error, too: what was printed before it is true.
      try output.flush()
    } catch {
      errors.append(error)
    }
    do {
      try await store.close()
    } catch {
      errors.append(error)
    }
    if let error = errors.first(where: { ($0 as? BrokenOutput)?.isReaderGone != true }) ?? errors.first { throw error }
    guard let result else { throw ExitStatus.internalFailure }
    return result
  }
}
