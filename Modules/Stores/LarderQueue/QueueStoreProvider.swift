public import Larder

/// A provider that opens ``QueueStore``s for `StoreRegistry`, from URLs like `queue:outbox`.
public struct QueueStoreProvider: StoreProvider {
  /// The name of the codec for new queues.
  public let codecName: String

  /// Creates a provider.
  ///
  /// - Parameter codecName: The name of the codec for new queues; defaults to `cbor`. An existing queue is opened with
  ///   the codec that it was written with.
  public init(codecName: String = "cbor") {
    self.codecName = codecName
  }

  /// The URL scheme, `queue`.
  public var scheme: String { "queue" }

  /// A one-line description of the stores.
  public var summary: String { "a durable queue in a folder at a path" }

  /// Opens the queue in the folder that the URL names, with a default ``QueueConfiguration``.
  ///
  /// - Throws: `StoreError` with `invalidArgument` if the path is empty; any error of opening a ``QueueStore`` or of
  ///   `codec`.
  public func open<Value: Sendable>(
    _ url: StoreURL, options: StoreOptions, codec: @escaping @Sendable (_ name: String) throws -> any Codec<Value>
  ) async throws -> AnyDataStore<Value> {
    AnyDataStore(try await openQueue(url, options: options, codec: codec))
  }

  /// Opens the queue in the folder that the URL names, as a ``QueueStore``.
  ///
  /// - Parameters:
  ///   - url: The URL of the queue.
  ///   - options: The options to open it with.
  ///   - configuration: The rules of the queue; defaults to `QueueConfiguration()`.
  ///   - leases: The treatment of running leases; defaults to ``LeasesOnOpening/kept``.
  ///   - onDeath: A closure that the queue calls for each item that becomes a dead letter; defaults to `nil`.
  ///   - codec: A closure that returns the codec for a name, which is that of the codec that the queue was written
  ///     with, or ``codecName`` for a new queue.
  /// - Throws: The same errors as ``open(_:options:codec:)``.
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
