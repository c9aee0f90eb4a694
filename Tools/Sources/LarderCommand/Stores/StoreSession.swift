import Larder
import LarderExpiry
import LarderMetrics

/// The time for which a verb has a store open.
enum StoreSession {
  /// Opens a store, does something with it, and closes it whatever happens.
  ///
  /// - Parameters:
  ///   - url: Where the store is.
  ///   - createsIfMissing: Whether a store that is not there is made.
  ///   - expiration: When an entry expires that is written now; see ``Stores/open(_:createsIfMissing:expiration:meter:)``.
  ///   - meter: What measures the store; its report goes to standard error at the end, whatever happens. `nil` for none.
  ///   - body: Gets the store, without what has expired, and where to print to; what it prints is flushed behind it.
  /// - Returns: What `body` returned.
  /// - Throws: The first of what opening, `body`, flushing and closing threw; that nobody reads the output any more
  ///   counts only where nothing else went wrong.
  static func run<Result>(
    _ url: String,
    createsIfMissing: Bool,
    expiration: Expiration? = nil,
    meter: StoreMeter?,
    _ body: (AnyDataStore<JSONText>, ByteOutput) async throws -> Result
  ) async throws -> Result {
    try await runOpened(url, createsIfMissing: createsIfMissing, expiration: expiration, meter: meter) {
      try await body($0.present, $1)
    }
  }

  /// Opens a store, does something with it and its deadlines, and closes it whatever happens.
  ///
  /// - Parameters:
  ///   - url: Where the store is.
  ///   - createsIfMissing: Whether a store that is not there is made.
  ///   - expiration: When an entry expires that is written now; see ``Stores/open(_:createsIfMissing:expiration:meter:)``.
  ///   - meter: What measures the store; its report goes to standard error at the end, whatever happens. `nil` for none.
  ///   - body: As that of ``run(_:createsIfMissing:expiration:meter:_:)``.
  /// - Returns: What `body` returned.
  /// - Throws: As ``run(_:createsIfMissing:expiration:meter:_:)``.
  static func runOpened<Result>(
    _ url: String,
    createsIfMissing: Bool,
    expiration: Expiration? = nil,
    meter: StoreMeter?,
    _ body: (OpenedStore, ByteOutput) async throws -> Result
  ) async throws -> Result {
    defer {
      if let meter { Diagnostics.writeLine("\(meter.report())") }
    }
    let opened = try await Stores.open(
      url, createsIfMissing: createsIfMissing, expiration: expiration, meter: meter)
    let output = ByteOutput()
    var result: Result?
    var errors: [any Error] = []
    do {
      result = try await body(opened, output)
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
      try await opened.present.close()
    } catch {
      errors.append(error)
    }
    if let error = errors.first(where: { ($0 as? BrokenOutput)?.isReaderGone != true }) ?? errors.first { throw error }
    guard let result else { throw ExitStatus.internalFailure }
    return result
  }
}
