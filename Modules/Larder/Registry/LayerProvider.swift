/// A type that adds one kind of layer to the stacks that a configuration describes.
///
/// Each module with a decorator or a codec for stacks has a provider, as each module with stores has a ``StoreProvider``.
/// A layer of your own needs some ten lines:
///
/// ```swift
/// struct CheckedLayerProvider: LayerProvider {
///   var name: String { "checked" }
///   var summary: String { "refuses values that are larger than a limit" }
///   var place: LayerPlace { LayerPlace(distance: 65) }
///   var settings: [LayerSetting] { [LayerSetting("limit", .bytes, "the largest value")] }
///
///   func open<Value: Sendable>(
///     codec: some Codec<Value>, over base: some OpenableStore, settings: LayerSettings
///   ) async throws -> AnyDataStore<Value> {
///     func layer(over store: some DataStore<Value>) -> AnyDataStore<Value> {
///       AnyDataStore(CheckedStore(store, limit: settings.byteCount("limit")))
///     }
///     return layer(over: try await base.open(codec: codec).base)
///   }
/// }
/// ```
///
/// In the generic function, the layer is around the store itself and not around an ``AnyDataStore``. So it has the
/// capabilities that it has in code, such as observation. See <doc:Existentials>.
public protocol LayerProvider: Sendable {
  /// The name of the layer in settings, such as `cached`.
  ///
  /// It is one word that begins with a lower-case letter and has only letters of ASCII.
  var name: String { get }

  /// A description of the layer for people, in one line.
  var summary: String { get }

  /// The place of the layer in a stack.
  var place: LayerPlace { get }

  /// The settings that the layer has.
  var settings: [LayerSetting] { get }

  /// The names of layers that the layer must not be combined with.
  ///
  /// Two layers at the same place contradict each other anyway. Defaults to an empty list.
  var contradictions: [String] { get }

  /// A Boolean value that indicates whether the layer fits a queue, such as a codec of its items.
  ///
  /// Defaults to `false`.
  var fitsQueues: Bool { get }

  /// Checks the settings before anything is opened.
  ///
  /// Each setting is in its range already, and other stacks that settings name are not open. Check what concerns several
  /// settings, or what your provider knows, such as the name of a key ring. Defaults to no check.
  ///
  /// - Parameter settings: The settings of one stack.
  /// - Throws: `StoreError` with `invalidArgument`; see ``LayerSettings/error(_:_:)``.
  func check(_ settings: LayerSettings) throws

  /// Opens a store with this layer around it.
  ///
  /// - Parameters:
  ///   - codec: The codec of the values.
  ///   - base: What is below the layer.
  ///   - settings: The settings that ``check(_:)`` has accepted.
  /// - Returns: The layer over the store below.
  /// - Throws: The errors of opening `base`; those of the layer, when `base` has been closed again; see
  ///   ``OpenableStore/open(codec:_:)``.
  func open<Value: Sendable>(
    codec: some Codec<Value>, over base: some OpenableStore, settings: LayerSettings
  ) async throws -> AnyDataStore<Value>
}

extension LayerProvider {
  /// An empty list.
  public var contradictions: [String] { [] }

  /// `false`.
  public var fitsQueues: Bool { false }

  /// Accepts all settings.
  public func check(_ settings: LayerSettings) throws {}
}

/// A store that is opened when the codec of its values is chosen.
///
/// The codec comes from above: a layer that changes what is stored passes another one to what is below it.
public protocol OpenableStore: Sendable {
  /// Opens the store.
  ///
  /// - Parameter codec: The codec of the values.
  /// - Throws: The errors of opening the store, such as `versionMismatch` if it was written with another codec.
  func open<Value: Sendable>(codec: some Codec<Value>) async throws -> AnyDataStore<Value>
}

extension OpenableStore {
  /// Opens the store and creates a layer around it, or closes the store again if the layer cannot be created.
  ///
  /// ```swift
  /// func users(in store: some OpenableStore) async throws -> AnyDataStore<User> {
  ///   try await store.open(codec: .raw) { bytes in AnyDataStore(bytes.typed(User.self, codec: .json())) }
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - codec: The codec of the values of the store.
  ///   - makeLayer: A closure that receives the open store and returns the layer.
  /// - Returns: The layer.
  /// - Throws: The errors of opening the store, with nothing open; the error of `makeLayer`, when the store has been closed
  ///   again; the error of closing it.
  public func open<Value: Sendable, Layer>(
    codec: some Codec<Value>, _ makeLayer: (AnyDataStore<Value>) async throws -> Layer
  ) async throws -> Layer {
    let store = try await open(codec: codec)
    do {
      return try await makeLayer(store)
    } catch {
      try await store.close()
      throw error
    }
  }
}

/// The place of a layer in a stack, as a distance from the store.
///
/// A stack has at most one layer at each place. The order of the named places is the recommended order of decorators and
/// codecs; see <doc:Composing>.
///
/// ```swift
/// var place: LayerPlace { LayerPlace(distance: 65) }  // between batching and caches
/// ```
public struct LayerPlace: Sendable, Hashable, Comparable {
  /// Reports of changes, next to the store, so that they include the writes of all layers.
  public static let observation = LayerPlace(distance: 10)

  /// A limit of the space of a store of bytes.
  public static let limit = LayerPlace(distance: 20)

  /// Encryption of values, which comes last before they are stored.
  public static let encryption = LayerPlace(distance: 30)

  /// Compression of values.
  public static let compression = LayerPlace(distance: 40)

  /// A second store that gets all writes, too.
  ///
  /// Each of the two stores has the layers below by itself, such as its own limit and encryption.
  public static let mirror = LayerPlace(distance: 50)

  /// Commits that several writers share.
  public static let batching = LayerPlace(distance: 60)

  /// Copies of values in another store, such as one on disk.
  public static let tier = LayerPlace(distance: 70)

  /// Copies of values in memory.
  public static let cache = LayerPlace(distance: 80)

  /// Commits that are made later.
  ///
  /// They must be outside of caches, which would keep values that were given up.
  public static let writeBehind = LayerPlace(distance: 90)

  /// Deadlines of entries.
  ///
  /// They must be outside of caches and of later commits.
  public static let expiry = LayerPlace(distance: 100)

  /// Measurements of calls as callers see them.
  public static let metrics = LayerPlace(distance: 110)

  /// A queue in the store below, which callers see as a queue.
  public static let queue = LayerPlace(distance: 120)

  /// The distance from the store.
  public let distance: Int

  /// Creates a place.
  ///
  /// - Parameter distance: The distance from the store. A layer between two others has a number between theirs.
  public init(distance: Int) {
    self.distance = distance
  }

  /// Returns whether a place is nearer to the store than another one.
  public static func < (left: LayerPlace, right: LayerPlace) -> Bool { left.distance < right.distance }
}
