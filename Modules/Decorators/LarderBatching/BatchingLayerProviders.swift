public import Larder

/// The provider of the layer `batched`, a ``BatchingStore`` in a configured stack.
///
/// ```swift
/// let stacks = try Stacks(
///   sources: [.json(path: "app.json")], stores: [SQLiteStoreProvider()], layers: [BatchedLayerProvider()])
/// ```
public struct BatchedLayerProvider: LayerProvider {
  /// Creates a provider.
  public init() {}

  /// The name `batched`.
  public var name: String { "batched" }

  /// A one-line description of the layer.
  public var summary: String { "writers that write at the same time share commits" }

  /// The place of batching.
  public var place: LayerPlace { .batching }

  /// The setting `changes`.
  public var settings: [LayerSetting] {
    [LayerSetting("changes", .count(1...Int.max), "the most changes in one commit; by default, 10000")]
  }

  /// Opens a store whose writers share commits.
  ///
  /// - Throws: The errors of opening `base`.
  public func open<Value: Sendable>(
    codec: some Codec<Value>, over base: some OpenableStore, settings: LayerSettings
  ) async throws -> AnyDataStore<Value> {
    func layer(over store: some DataStore<Value>) -> AnyDataStore<Value> {
      AnyDataStore(store.batched(bounds: settings.batchBounds()))
    }
    return layer(over: try await base.open(codec: codec).base)
  }
}

/// The provider of the layer `writeBehind`, a ``WriteBehindStore`` in a configured stack.
///
/// Writes that were accepted, but not yet written, are lost if the process dies. Your program learns of the changes that are
/// given up:
///
/// ```swift
/// let layer = WriteBehindLayerProvider { lost in
///   logger.error("\(lost.stack): \(lost.changes.count) changes were lost: \(lost.error)")
/// }
/// ```
public struct WriteBehindLayerProvider: LayerProvider {
  private let onFailure: @Sendable (LostChanges) -> Void

  /// Creates a provider.
  ///
  /// - Parameter onFailure: A closure that receives the changes that a stack has accepted and given up. It must not wait for
  ///   the stack. Until you call ``LostChanges/free()``, the changes use room, and `flush()`, `synchronize()` and `close()` of
  ///   the stack throw their error.
  public init(onFailure: @escaping @Sendable (_ lost: LostChanges) -> Void) {
    self.onFailure = onFailure
  }

  /// The name `writeBehind`.
  public var name: String { "writeBehind" }

  /// A one-line description of the layer.
  public var summary: String { "writes later; what is not yet written is lost if the process dies" }

  /// The place of later commits, outside of caches, which would keep values that were given up.
  public var place: LayerPlace { .writeBehind }

  /// The layer `batched`, because all pending changes are one commit anyway.
  public var contradictions: [String] { ["batched"] }

  /// The settings `age` and `changes`.
  public var settings: [LayerSetting] {
    [
      LayerSetting("age", .duration, "the longest time until a change is written; by default, 100ms"),
      LayerSetting("changes", .count(1...Int.max), "the most changes that wait; by default, 10000"),
    ]
  }

  /// Opens a store that is written later.
  ///
  /// - Throws: The errors of opening `base`.
  public func open<Value: Sendable>(
    codec: some Codec<Value>, over base: some OpenableStore, settings: LayerSettings
  ) async throws -> AnyDataStore<Value> {
    func layer(over store: some DataStore<Value>) -> AnyDataStore<Value> {
      // The failure of a store is reported with a closure that refers to the store, which does not exist yet.
      let free = Locked<@Sendable () -> Void>({})
      let stack = settings.stack
      let layer = store.writeBehind(
        bounds: settings.batchBounds(), maximumAge: settings.duration("age") ?? .milliseconds(100)
      ) { [onFailure] failure in
        onFailure(LostChanges(failure, of: stack, freeing: free.withLock { $0 }))
      }
      free.withLock { $0 = { [weak layer] in _ = layer?.takeFailures() } }
      return AnyDataStore(layer)
    }
    return layer(over: try await base.open(codec: codec).base)
  }
}

/// Changes that a configured stack with the layer `writeBehind` had accepted and could not write.
///
/// The values are not in it, because the closure of a program receives those of all stacks. A store in code has a
/// ``WriteBehindFailure`` with them.
public struct LostChanges: Sendable {
  /// The name of the stack.
  public let stack: String

  /// The changed keys, in the order in which their changes were accepted.
  public let changes: [StoreChange]

  /// The error of the write.
  public let error: StoreError

  private let freeing: @Sendable () -> Void

  init(_ failure: WriteBehindFailure<some Sendable>, of stack: String, freeing: @escaping @Sendable () -> Void) {
    self.stack = stack
    changes = failure.changes.changes.map { change in
      switch change {
      case .set(let key, _), .remove(let key): .key(key)
      case .removeAll(let range): .range(range)
      }
    }
    error = failure.error
    self.freeing = freeing
  }

  /// Frees the room of all changes that the stack has given up so far, so that it accepts as many others, and no longer
  /// throws their error.
  ///
  /// Call it after the closure that has received the changes has returned, such as when an operator has seen the error. Before,
  /// it has no effect on them. Without it, a stack accepts no change when the lost ones fill its bounds.
  public func free() { freeing() }
}

extension LayerSettings {
  fileprivate func batchBounds<Value>() -> BatchBounds<Value> {
    count("changes").map { BatchBounds(changes: $0) } ?? BatchBounds()
  }
}
