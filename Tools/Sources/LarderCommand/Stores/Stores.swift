import Foundation
import Larder
import LarderCompression
import LarderExpiry
import LarderJSON
import LarderLMDB
import LarderMetrics
import LarderQueue

/// The stores that the tool can open.
enum Stores {
  /// The kinds of store.
  ///
  /// The rest of the tool knows nothing of them.
  static let registry = StoreRegistry(providers: [
    MemoryStoreProvider(), JSONFileStoreProvider(), CompressedFileStoreProvider(), LMDBStoreProvider(), queueProvider,
  ])

  /// What opens queues.
  ///
  /// Those that the tool makes hold JSON, so that an item comes out as it was passed, to the last digit.
  private static let queueProvider = ReportingQueueProvider(QueueStoreProvider(codecName: JSONTextCodec().name))

  /// Opens a store, with the codec that it was written with.
  ///
  /// - Parameters:
  ///   - target: The store.
  ///   - createsIfMissing: Whether it is made where it is missing.
  ///   - access: Whether the store may write to its files.
  ///   - expiration: When an entry expires that is written now; `nil`, the default, where nobody has said. Else a new store
  ///     is made for values that expire, and one that was made for others is refused.
  ///   - codecName: The codec that the store must have, or is made with; `nil`, the default, for any.
  /// - Throws: ``CommandFailure`` where there is no such kind of store, its values do not expire though they should, or it
  ///   has another codec; what the store throws on opening.
  static func open(
    _ target: StoreTarget, createsIfMissing: Bool, access: StoreAccess, expiration: Expiration? = nil,
    codecName: String? = nil
  ) async throws -> OpenedStore {
    let url = try StoreURL(target.url)
    guard registry.providers.contains(where: { $0.scheme == url.scheme }) else {
      let known = registry.providers.map { "\($0.scheme):" }.joined(separator: ", ")
      throw CommandFailure(.usage, "no kind of store has the scheme \(url.scheme):", advice: "There is \(known).")
    }
    let codecs = ValueCodecs(dictionaries: await dictionaries(besideStoreAt: url))
    let choice = CodecChoice(from: codecs, makesExpiring: expiration != nil, codecName: codecName)
    do {
      let options = StoreOptions(createsIfMissing: createsIfMissing, access: access)
      let stored = try await measuring(target.meter) {
        try await LockWait(upTo: target.patience).run {
          try await registry.open(url, options: options, codec: choice.codec)
        }
      }
      return OpenedStore(stored, codec: choice.codec, isExpiring: choice.isExpiring, expiration: expiration ?? .never)
    } catch let error as StoreError
      where error.code == .versionMismatch && expiration != nil && choice.values == .plain
    {
      throw CommandFailure.plainValues(
        in: url.description, advice: "Give a new store, or leave out --ttl; the store was left as it is.")
    } catch let error as StoreError
      where [.versionMismatch, .unsupported].contains(error.code) && choice.refusedName != nil
    {
      throw CommandFailure(error, hint: "Give --codec \(choice.refusedName ?? "") to write the values so.")
    }
  }

  /// Opens a queue, with the codec that it was written with.
  ///
  /// - Parameters:
  ///   - url: Where it is.
  ///   - createsIfMissing: Whether it is made where it is missing.
  ///   - patience: How long to wait where another has it open.
  ///   - meter: What measures the opening, waiting included; `nil` for nothing.
  /// - Throws: ``CommandFailure`` where the URL is that of another kind of store; what the queue throws on opening.
  static func openQueue(
    _ target: StoreTarget, createsIfMissing: Bool, access: StoreAccess
  ) async throws -> QueueStore<Expiring<JSONText>> {
    let url = try StoreURL(target.url)
    guard url.scheme == queueProvider.scheme else {
      throw CommandFailure(
        .usage, "\(url) is no queue", advice: "The URL of a queue begins with \(queueProvider.scheme):.")
    }
    let choice = CodecChoice(
      from: ValueCodecs(dictionaries: await dictionaries(besideStoreAt: url)), makesExpiring: false)
    let options = StoreOptions(createsIfMissing: createsIfMissing, access: access)
    return try await measure(.open, by: target.meter) {
      try await LockWait(upTo: target.patience).run {
        try await queueProvider.openQueue(url, options: options, codec: choice.codec)
      }
    }
  }

  /// Opens an LMDB environment.
  ///
  /// - Parameters:
  ///   - target: The environment, or a store in it.
  ///   - access: Whether its files may be written to.
  /// - Returns: The environment, and its URL without the name of a store.
  /// - Throws: ``CommandFailure`` where the URL is that of another kind of store; what opening throws.
  static func openEnvironment(
    _ target: StoreTarget, access: StoreAccess
  ) async throws -> (environment: LMDBEnvironment, url: String) {
    let url = try StoreURL(target.url)
    guard url.scheme == LMDBStoreProvider().scheme else {
      throw CommandFailure(
        .usage, "\(url) is no LMDB environment", advice: "There is one store at each place of the other kinds.")
    }
    let path = try path(of: url)
    let environment = try await measure(.open, by: target.meter) {
      try await LockWait(upTo: target.patience).run {
        try await LMDBEnvironment(path: path, access: access, createsIfMissing: false)
      }
    }
    return (environment, "\(url.scheme):\(path)")
  }

  /// Does something, measured where there is something that measures.
  static func measure<Result>(
    _ operation: StoreOperation, by meter: StoreMeter?, _ body: () async throws -> Result
  ) async throws -> Result {
    guard let meter else { return try await body() }
    return try await meter.measure(operation.rawValue, body)
  }

  /// Measures the opening of a store, and puts what measures the rest in front of it.
  private static func measuring<Value>(
    _ meter: StoreMeter?, _ open: () async throws -> AnyDataStore<Value>
  ) async throws -> AnyDataStore<Value> {
    guard let meter else { return try await open() }
    return AnyDataStore(try await measure(.open, by: meter, open).metered(by: meter))
  }

  /// The dictionaries that lie beside a store, where there are any, or why they cannot be read.
  private static func dictionaries(besideStoreAt url: StoreURL) async -> Result<CompressionDictionaries, any Error> {
    do {
      return .success(try await .read(fromFile: CompressionDictionaries.path(besideStoreAt: try path(of: url))))
    } catch {
      return .failure(error)
    }
  }

  /// The path of a store's file or folder.
  ///
  /// - Throws: `StoreError` if the URL is that of an LMDB store, and does not say which part is the path.
  private static func path(of url: StoreURL) throws -> String {
    // Behind the path of an LMDB environment stands the name of a store in it.
    let lmdb = LMDBStoreProvider()
    return url.scheme == lmdb.scheme ? try lmdb.environmentPath(of: url) : url.location
  }

  /// Whether two stores are in one LMDB environment, which a process has open with one access only.
  static func shareEnvironment(_ one: String, _ other: String) throws -> Bool {
    let urls = [try StoreURL(one), try StoreURL(other)]
    guard urls.allSatisfy({ $0.scheme == LMDBStoreProvider().scheme }) else { return false }
    let paths = try urls.map { URL(filePath: try path(of: $0)).resolvingSymlinksInPath().path }
    return paths[0] == paths[1]
  }

  /// The kinds of store for the help, one per line.
  static var listing: String {
    registry.providers.map { provider in
      let scheme = "\(provider.scheme):"
      return "  \(scheme)\(String(repeating: " ", count: max(1, 12 - scheme.count)))\(provider.summary)"
    }.joined(separator: "\n")
  }
}
