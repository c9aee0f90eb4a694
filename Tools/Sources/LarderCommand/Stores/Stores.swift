import Foundation
import Larder
import LarderCompressedFile
import LarderCompression
import LarderExpiry
import LarderJSON
import LarderLMDB
import LarderMetrics
import LarderQueue

/// The stores that the tool can open.
enum Stores {
  /// The kinds of store, by scheme.
  static let registry = StoreRegistry(providers: [
    MemoryStoreProvider(), JSONFileStoreProvider(), CompressedFileStoreProvider(), LMDBStoreProvider(), queueProvider,
  ])

  /// The provider of queues.
  ///
  /// The queues that the tool creates hold JSON, so that an item comes out unchanged, to the last digit.
  private static let queueProvider = ReportingQueueProvider(QueueStoreProvider(codecName: JSONTextCodec().name))

  /// Opens a store with the codec that it was written with.
  ///
  /// - Parameters:
  ///   - target: The store.
  ///   - createsIfMissing: Whether a missing store is created.
  ///   - access: Whether the store may write to its files.
  ///   - timeToLive: The time to live of the entries that are written; defaults to `nil`. If it is given, a new store is
  ///     created for values that expire, and an existing store of other values is refused.
  ///   - codecName: The codec that the store must have or is created with; defaults to `nil`, for any codec.
  /// - Throws: ``CommandFailure`` if the scheme is unknown, the values do not expire but must, or the store has another
  ///   codec; the errors of opening the store.
  static func open(
    _ target: StoreTarget, createsIfMissing: Bool, access: StoreAccess, timeToLive: TimeToLive? = nil,
    codecName: String? = nil
  ) async throws -> OpenedStore {
    let url = try StoreURL(target.url)
    guard registry.providers.contains(where: { $0.scheme == url.scheme }) else {
      let known = registry.providers.map { "\($0.scheme):" }.joined(separator: ", ")
      throw CommandFailure(.usage, "unknown scheme \(url.scheme):", advice: "The schemes are \(known).")
    }
    let codecs = ValueCodecs(dictionaries: await dictionaries(besideStoreAt: url))
    let choice = CodecChoice(from: codecs, makesExpiring: timeToLive != nil, codecName: codecName)
    do {
      let options = StoreOptions(createsIfMissing: createsIfMissing, access: access)
      let stored = try await measuring(target.meter) {
        try await LockWait(upTo: target.timeout).run {
          try await registry.open(url, options: options, codec: choice.codec)
        }
      }
      return OpenedStore(
        stored, codec: choice.codec, isExpiring: choice.isExpiring, timeToLive: timeToLive ?? .unlimited)
    } catch let error as StoreError
      where error.code == .versionMismatch && timeToLive != nil && choice.values == .plain
    {
      throw CommandFailure.plainValues(
        in: url.description, advice: "Give a new store, or omit --ttl; the store was left unchanged.")
    } catch let error as StoreError
      where [.versionMismatch, .unsupported].contains(error.code) && choice.refusedName != nil
    {
      throw CommandFailure(error, hint: "To convert the values, give --codec \(choice.refusedName ?? "").")
    }
  }

  /// Opens a queue with the codec that it was written with.
  ///
  /// - Parameters:
  ///   - target: The queue. Its meter measures the opening, including the wait.
  ///   - createsIfMissing: Whether a missing queue is created.
  ///   - access: Whether the queue may write to its files.
  /// - Throws: ``CommandFailure`` if the URL is one of another kind of store; the errors of opening the queue.
  static func openQueue(
    _ target: StoreTarget, createsIfMissing: Bool, access: StoreAccess
  ) async throws -> QueueStore<Expiring<JSONText>> {
    let url = try StoreURL(target.url)
    guard url.scheme == queueProvider.scheme else {
      throw CommandFailure(
        .usage, "\(url) is not a queue", advice: "The scheme of queues is \(queueProvider.scheme):.")
    }
    let choice = CodecChoice(
      from: ValueCodecs(dictionaries: await dictionaries(besideStoreAt: url)), makesExpiring: false)
    let options = StoreOptions(createsIfMissing: createsIfMissing, access: access)
    return try await measure(.open, by: target.meter) {
      try await LockWait(upTo: target.timeout).run {
        try await queueProvider.openQueue(url, options: options, codec: choice.codec)
      }
    }
  }

  /// Opens an LMDB environment.
  ///
  /// - Parameters:
  ///   - target: The environment, or a store in it.
  ///   - access: Whether the environment may write to its files.
  /// - Returns: The environment, and its URL without the name of a store.
  /// - Throws: ``CommandFailure`` if the URL is one of another kind of store; the errors of opening the environment.
  static func openEnvironment(
    _ target: StoreTarget, access: StoreAccess
  ) async throws -> (environment: LMDBEnvironment, url: String) {
    let url = try StoreURL(target.url)
    guard url.scheme == LMDBStoreProvider().scheme else {
      throw CommandFailure(
        .usage, "\(url) is not an LMDB environment", advice: "Other kinds of store hold one store at each location.")
    }
    let path = try path(of: url)
    let environment = try await measure(.open, by: target.meter) {
      try await LockWait(upTo: target.timeout).run {
        try await LMDBEnvironment(path: path, access: access, createsIfMissing: false)
      }
    }
    return (environment, "\(url.scheme):\(path)")
  }

  /// Runs an operation, and measures it if there is a meter.
  static func measure<Result>(
    _ operation: StoreOperation, by meter: StoreMeter?, _ body: () async throws -> Result
  ) async throws -> Result {
    guard let meter else { return try await body() }
    return try await meter.measure(operation.rawValue, body)
  }

  /// Opens a store, and measures the opening and all later operations if there is a meter.
  private static func measuring<Value>(
    _ meter: StoreMeter?, _ open: () async throws -> AnyDataStore<Value>
  ) async throws -> AnyDataStore<Value> {
    guard let meter else { return try await open() }
    return AnyDataStore(try await measure(.open, by: meter, open).metered(by: meter))
  }

  /// Reads the dictionaries beside a store, if there are any.
  private static func dictionaries(besideStoreAt url: StoreURL) async -> Result<CompressionDictionaries, any Error> {
    do {
      return .success(try await .read(fromFile: CompressionDictionaries.path(besideStoreAt: try path(of: url))))
    } catch {
      return .failure(error)
    }
  }

  /// Returns the path of a store's file or folder.
  ///
  /// - Throws: `StoreError` if the URL is one of an LMDB store, and its path is ambiguous.
  private static func path(of url: StoreURL) throws -> String {
    // The location of an LMDB store ends with its name in the environment.
    let lmdb = LMDBStoreProvider()
    return url.scheme == lmdb.scheme ? try lmdb.environmentPath(of: url) : url.location
  }

  /// Returns whether two stores are in the same LMDB environment, which a process can open with one access only.
  static func shareEnvironment(_ one: String, _ other: String) throws -> Bool {
    let urls = [try StoreURL(one), try StoreURL(other)]
    guard urls.allSatisfy({ $0.scheme == LMDBStoreProvider().scheme }) else { return false }
    let paths = try urls.map { URL(filePath: try path(of: $0)).resolvingSymlinksInPath().path }
    return paths[0] == paths[1]
  }

  /// The kinds of store for the help, one in each line.
  static var listing: String {
    registry.providers.map { provider in
      let scheme = "\(provider.scheme):"
      return "  \(scheme)\(String(repeating: " ", count: max(1, 12 - scheme.count)))\(provider.summary)"
    }.joined(separator: "\n")
  }
}

/// A provider of queues that reports damage and each item that becomes a dead letter on standard error.
///
/// A damaged queue serves its readable items. A program can ask the queue for the damage, but a user of the tool would
/// take those items for all of them.
struct ReportingQueueProvider: StoreProvider {
  private let base: QueueStoreProvider

  /// Creates a provider.
  ///
  /// - Parameter base: The provider that opens the queues.
  init(_ base: QueueStoreProvider) {
    self.base = base
  }

  var scheme: String { base.scheme }
  var summary: String { base.summary }

  func open<Value: Sendable>(
    _ url: StoreURL, options: StoreOptions, codec: @escaping @Sendable (_ name: String) throws -> any Codec<Value>
  ) async throws -> AnyDataStore<Value> {
    AnyDataStore(try await openQueue(url, options: options, codec: codec))
  }

  /// Opens a queue.
  ///
  /// - Throws: The errors of `QueueStoreProvider.openQueue`.
  func openQueue<Value: Sendable>(
    _ url: StoreURL, options: StoreOptions, codec: @escaping @Sendable (_ name: String) throws -> any Codec<Value>
  ) async throws -> QueueStore<Value> {
    let queue = try await base.openQueue(
      url, options: options, onDeath: { Diagnostics.writeLine("larder: \($0.key): \($0)") }, codec: codec)
    if let damage = Self.text(of: queue.recovery) {
      Diagnostics.writeLine(
        "larder: \(url) is damaged: \(damage). All other items are available; run `larder verify` for details.")
    }
    return queue
  }

  /// Returns a description of the damage, or `nil` if there is none.
  static func text(of report: RecoveryReport) -> String? {
    var parts: [String] = []
    if report.damagedPlaces > 0 {
      let places = report.damagedPlaces == 1 ? "1 place" : "\(report.damagedPlaces) places"
      parts.append("\(report.damagedBytes) bytes in \(places) cannot be read")
    }
    if report.missingSegments > 0 {
      parts.append(report.missingSegments == 1 ? "1 file is missing" : "\(report.missingSegments) files are missing")
    }
    return parts.isEmpty ? nil : parts.joined(separator: ", ")
  }
}

/// Retries to open a store while another program has it open, up to a timeout.
///
/// The kernel sends no notification when a lock is released, so this polls, with growing pauses.
struct LockWait {
  private static let longestPause = Duration.milliseconds(50)

  private let timeout: Duration

  /// Creates a wait.
  ///
  /// - Parameter timeout: The time after which it gives up. It tries at least once.
  init(upTo timeout: Duration) {
    self.timeout = timeout
  }

  /// Calls a closure until it succeeds or the timeout has passed.
  ///
  /// - Parameter open: Opens the store.
  /// - Returns: The result of `open`.
  /// - Throws: The error of `open`; ``StoreError`` with `locked` during opening only after the timeout.
  func run<Result>(_ open: () async throws -> Result) async throws -> Result {
    let clock = ContinuousClock()
    let deadline = clock.now.advanced(by: timeout)
    var pause = Duration.milliseconds(1)
    while true {
      do {
        return try await open()
      } catch let error as StoreError {
        let left = clock.now.duration(to: deadline)
        guard error.code == .locked, error.operation == .open, left > .zero else { throw error }
        // A random part of the pause, so that of many waiting processes none is too late every time.
        let part = pause * Double.random(in: 0.5...1)
        try await clock.sleep(for: min(part, left))
      }
      pause = min(pause * 2, LockWait.longestPause)
    }
  }
}
