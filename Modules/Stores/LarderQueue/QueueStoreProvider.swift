import Foundation
public import Larder
import LarderFiles

/// A provider that opens ``QueueStore``s for `StoreRegistry`, from URLs like `queue:outbox`.
///
/// ```swift
/// let untyped = try await QueueStoreProvider().open(StoreURL("queue:outbox"), options: StoreOptions(), newCodecName: nil)
/// let outbox = try untyped.queue(codec: .cbor(Event.self))
/// ```
public struct QueueStoreProvider: StoreProvider {
  /// The name of the default codec of new queues.
  public let codecName: String

  private let onDeadLetter: (@Sendable (DeadLetterEvent) -> Void)?

  /// Creates a provider.
  ///
  /// - Parameters:
  ///   - codecName: The name of the default codec of new queues. Defaults to `cbor`.
  ///   - onDeadLetter: A closure that each queue calls for each item that becomes a dead letter. Defaults to `nil`.
  public init(codecName: String = "cbor", onDeadLetter: (@Sendable (DeadLetterEvent) -> Void)? = nil) {
    self.codecName = codecName
    self.onDeadLetter = onDeadLetter
  }

  /// The URL scheme, `queue`.
  public var scheme: String { "queue" }

  /// A one-line description of the stores.
  public var summary: String { "a durable queue in a folder at a path" }

  /// `true`.
  public var opensQueues: Bool { true }

  /// Opens the queue in the folder that the URL names, with a default ``QueueConfiguration``.
  ///
  /// - Throws: `StoreError` with `invalidArgument` if the path is empty; any error of opening a ``QueueStore``.
  public func open(_ url: StoreURL, options: StoreOptions, newCodecName: String?) async throws -> UntypedQueue {
    try await UntypedQueue(
      path: url.path, configuration: QueueConfiguration(), durability: options.durability, access: options.access,
      leases: .kept, createsIfMissing: options.createsIfMissing, onDeadLetter: onDeadLetter,
      newCodecName: newCodecName ?? codecName)
  }
}

/// An open queue whose type of items is not chosen yet, which ``QueueStoreProvider`` opens.
public struct UntypedQueue: UntypedStore {
  /// The name of the codec that the queue was written with.
  public let codecName: String

  /// Damage and torn records that opening the queue found in its files.
  public let recovery: RecoveryReport

  let engine: QueueEngine
  let retrying: RetryDelays

  /// Opens the files; see ``QueueStore``.
  init(
    path: String, configuration: QueueConfiguration, durability: Durability.File, access: StoreAccess,
    leases: LeasesOnOpening, createsIfMissing: Bool, fileSystem: some StoreFileSystem = POSIXFileSystem(),
    environment: QueueEnvironment = QueueEnvironment(),
    onDeadLetter: (@Sendable (DeadLetterEvent) -> Void)? = nil, newCodecName: String
  ) async throws {
    let name = FilePaths.split(path).name
    try configuration.check(store: name)
    let folder = QueueFolder(
      name: name, path: path, durability: durability, access: access,
      createsIfMissing: createsIfMissing && access == .readWrite, segmentSize: Int64(configuration.segmentSize),
      fileSystem: fileSystem)
    let (clock, now) = (environment.clock, environment.now)
    let time = QueueTime(clock: clock) { (now?() ?? Date.now).microsecondsSince1970 }
    let executor = DispatchQueueExecutor(label: "Larder.QueueStore.opening")
    let opened = try await executor.run {
      try QueueRecovery.open(
        folder, rules: QueueRules(configuration), leases: leases, at: time.steady(), newCodecName: newCodecName)
    }
    let information = StoreInformation(
      name: name, durability: Durability(durability), sharing: .exclusive, access: access,
      maximumValueSize: QueueFrame.maximumBodyLength - 1024,
      entryLifetime: configuration.capacity.policy == .dropOldest ? .untilEvicted : .untilRemoved,
      identity: StoreIdentity(), readsMayBeCopies: false)
    engine = QueueEngine(
      opened, information: information, policy: configuration.capacity.policy, clock: clock, time: time,
      onDeadLetter: onDeadLetter)
    retrying = RetryDelays(policy: configuration.policy.retryPolicy, clock: clock, generator: environment.randomness)
    codecName = opened.log.codecName
    recovery = opened.report
  }

  /// Returns the queue as a queue of items of one type.
  ///
  /// - Parameter codec: The codec of the items.
  /// - Throws: `StoreError` with `versionMismatch` if the codec has a different name than the queue's codec.
  public func queue<Element: Sendable>(codec: some Codec<Element>) throws -> QueueStore<Element> {
    try QueueStore(self, codec: codec)
  }

  /// Returns the queue as a store of values of one type; see ``queue(codec:)``.
  public func typed<Value: Sendable>(codec: some Codec<Value>) throws -> AnyDataStore<Value> {
    AnyDataStore(try queue(codec: codec))
  }
}
