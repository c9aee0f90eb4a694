public import Larder

/// The provider of the layer `mirrored`, a ``MirroredStore`` in a configured stack, whose secondary is another stack.
///
/// Each of the two has layers of its own below the mirror, such as compression and encryption, so the move can change them.
/// Layers such as caches are above the mirror.
///
/// ```swift
/// let layer = MirroredLayerProvider { stack, error in
///   logger.error("\(stack) has to be repaired: \(error)")
/// } onOpen: { stack, mirror in
///   mirrors.withLock { $0[stack] = mirror }
/// }
/// ```
///
/// Closing the stack closes both stores.
public struct MirroredLayerProvider: LayerProvider {
  private let onSecondaryFailure: @Sendable (_ stack: String, _ error: any Error) -> Void
  private let onOpen: @Sendable (_ stack: String, _ mirror: any StoreMirror) -> Void

  /// Creates a provider.
  ///
  /// - Parameters:
  ///   - onSecondaryFailure: A closure that receives the name of the stack and the error of each write that its secondary has
  ///     not made. Repair the mirror then.
  ///   - onOpen: A closure that receives the name of each stack that is opened with a mirror, and the mirror, to repair it
  ///     and to exchange its stores. Defaults to a closure that does nothing.
  public init(
    onSecondaryFailure: @escaping @Sendable (_ stack: String, _ error: any Error) -> Void,
    onOpen: @escaping @Sendable (_ stack: String, _ mirror: any StoreMirror) -> Void = { _, _ in }
  ) {
    self.onSecondaryFailure = onSecondaryFailure
    self.onOpen = onOpen
  }

  /// The name `mirrored`.
  public var name: String { "mirrored" }

  /// A one-line description of the layer.
  public var summary: String { "writes to another stack, too, to move to it" }

  /// The place of mirrors.
  public var place: LayerPlace { .mirror }

  /// The settings `secondary` (required) and `plain`.
  public var settings: [LayerSetting] {
    [
      LayerSetting(
        "secondary", .stack, "the name of the stack that gets all writes, too",
        required: "set the name of another stack, which gets all writes, too"),
      LayerSetting(
        "plain", .flag, "whether the secondary may store encrypted values in plain form; by default, it may not"),
    ]
  }

  /// Opens a store that writes to another one, too.
  ///
  /// - Throws: `StoreError` with `unsupported` if the values are not `Equatable`; the errors of opening `base`, of opening
  ///   the secondary and of creating a ``MirroredStore``.
  public func open<Value: Sendable>(
    codec: some Codec<Value>, over base: some OpenableStore, settings: LayerSettings
  ) async throws -> AnyDataStore<Value> {
    // A layer is opened for values of every type, and a mirror compares them.
    guard let creator = MirrorCreator<Value>() as? any EquatableMirrorCreator<Value> else {
      throw StoreError(
        .unsupported, during: .open, store: settings.stack,
        message: "\(settings.layerKey) needs values that it can compare; let \(Value.self) conform to Equatable")
    }
    let secondary = try settings.store("secondary")
    let stack = settings.stack
    func mirror(
      _ primary: some DataStore<Value>, _ secondary: some DataStore<Value>
    ) throws -> AnyDataStore<Value> {
      let created: any StoreMirror & DataStore<Value>
      do {
        created = try creator.mirror(primary, secondary, allowsPlainCopies: settings.flag("plain") ?? false) {
          onSecondaryFailure(stack, $0)
        }
      } catch let error as StoreError {
        throw settings.misfit(error)
      }
      onOpen(stack, created)
      return AnyDataStore(created)
    }
    return try await base.open(codec: codec) { store in
      try await secondary.open(codec: codec) { try mirror(store.base, $0.base) }
    }
  }
}

/// A ``MirroredStore`` of any type, as a configured stack passes it to its program.
///
/// ```swift
/// func move(_ mirror: any StoreMirror) async throws {
///   try await mirror.repair()
///   try await mirror.promoteSecondary()
/// }
/// ```
public protocol StoreMirror: Sendable {
  /// A Boolean value that indicates whether both stores are known to have the same entries; see
  /// ``MirroredStore/isSynchronized``.
  var isSynchronized: Bool { get }

  /// A Boolean value that indicates whether the stores are exchanged; see ``MirroredStore/isSwitched``.
  var isSwitched: Bool { get }

  /// Copies missing entries to the secondary; see ``MirroredStore/repair(in:after:batchSize:progress:)``.
  @discardableResult
  func repair(
    in range: KeyRange, after cursor: PageCursor?, batchSize: Int, progress: (RepairProgress) throws -> Void
  ) async throws -> RepairProgress

  /// Calls a closure with each key whose values differ; see ``MirroredStore/forEachDifference(in:batchSize:_:)``.
  func forEachDifference(
    in range: KeyRange, batchSize: Int, _ body: (StoreDifference) async throws -> Void
  ) async throws

  /// Exchanges the two stores; see ``MirroredStore/promoteSecondary()``.
  func promoteSecondary() async throws
}

extension StoreMirror {
  /// Copies all missing entries to the secondary; see ``MirroredStore/repair(in:after:batchSize:progress:)``.
  ///
  /// - Returns: The progress at the end.
  /// - Throws: The errors of both stores; `CancellationError`.
  @discardableResult
  public func repair() async throws -> RepairProgress {
    try await repair(in: .all, after: nil, batchSize: 1000) { _ in }
  }
}

extension MirroredStore: StoreMirror {}

/// A creator of mirrors of values that may be equatable.
private struct MirrorCreator<Value: Sendable> {}

/// A creator of mirrors of values that are equatable.
private protocol EquatableMirrorCreator<Value> {
  associatedtype Value: Sendable

  func mirror(
    _ primary: some DataStore<Value>, _ secondary: some DataStore<Value>, allowsPlainCopies: Bool,
    onSecondaryFailure: @escaping @Sendable (any Error) -> Void
  ) throws -> any StoreMirror & DataStore<Value>
}

extension MirrorCreator: EquatableMirrorCreator where Value: Equatable {
  func mirror(
    _ primary: some DataStore<Value>, _ secondary: some DataStore<Value>, allowsPlainCopies: Bool,
    onSecondaryFailure: @escaping @Sendable (any Error) -> Void
  ) throws -> any StoreMirror & DataStore<Value> {
    try MirroredStore(
      primary: primary, secondary: secondary, allowsPlainCopies: allowsPlainCopies,
      onSecondaryFailure: onSecondaryFailure)
  }
}
