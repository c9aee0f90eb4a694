public import Larder

/// Opens ``QueueStore``s for ``StoreRegistry``, for URLs like `queue:outbox`.
public struct QueueStoreProvider: StoreProvider {
  /// The name of the codec for queues that are made.
  public let codecName: String

  /// Makes the provider.
  ///
  /// - Parameter codecName: The name of the codec for queues that are made; defaults to `cbor`. A queue that is there is
  ///   opened with the codec that it was written with.
  public init(codecName: String = "cbor") {
    self.codecName = codecName
  }

  /// `queue`.
  public var scheme: String { "queue" }

  /// A description of the stores in one line.
  public var summary: String { "a durable queue in a folder at a path" }

  /// Opens the queue whose folder is at the path behind the scheme, with the rules of a ``QueueConfiguration`` as it is made.
  ///
  /// - Throws: ``StoreError``: `invalidArgument` if the path is empty; what opening a ``QueueStore`` throws; what `codec`
  ///   throws.
  public func open<Value: Sendable>(
    _ url: StoreURL, options: StoreOptions, codec: @escaping @Sendable (_ name: String) throws -> any Codec<Value>
  ) async throws -> AnyDataStore<Value> {
    AnyDataStore(try await openQueue(url, options: options, codec: codec))
  }

  /// Opens the queue whose folder is at the path behind the scheme, as a queue.
  ///
  /// - Parameters:
  ///   - url: Where it is.
  ///   - options: How to open it.
  ///   - configuration: The rules of the queue; defaults to `QueueConfiguration()`.
  ///   - leases: What becomes of leases that go on; defaults to ``LeasesOnOpening/kept``.
  ///   - onDeath: Is called for each item that becomes a dead letter; defaults to `nil`.
  ///   - codec: Gives the codec for the name of the one that the queue was written with; ``codecName`` for a new queue.
  /// - Throws: As ``open(_:options:codec:)``.
  public func openQueue<Value: Sendable>(
    _ url: StoreURL, options: StoreOptions, configuration: QueueConfiguration = QueueConfiguration(),
    leases: LeasesOnOpening = .kept, onDeath: (@Sendable (QueueDeath) -> Void)? = nil,
    codec: @escaping @Sendable (_ name: String) throws -> any Codec<Value>
  ) async throws -> QueueStore<Value> {
    guard !url.location.isEmpty else {
      throw StoreError(
        .invalidArgument, during: .open, store: url.description, message: "the path of the queue's folder is missing")
    }
    return try await QueueStore(
      path: url.location, configuration: configuration, durability: options.durability, access: options.access,
      leases: leases, createsIfMissing: options.createsIfMissing, onDeath: onDeath, newCodecName: codecName,
      choosing: codec)
  }
}
