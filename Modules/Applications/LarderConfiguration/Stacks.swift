#if Configuration
public import Larder

/// The stores of a program by name, each with the layers that a configuration says.
///
/// Your program lists what is possible, and the types of the values. The configuration says which store it is, and which
/// layers are around it:
///
/// ```json
/// {
///   "stores": {
///     "sessions": {
///       "url": "sqlite:shop.db#sessions",
///       "batched": true,
///       "cached": { "entries": 10000 },
///       "expiring": { "sliding": "30m" }
///     }
///   }
/// }
/// ```
///
/// ```swift
/// let stacks = Stacks(
///   sources: [.arguments(), .environment(), try .json(path: "app.json")],
///   stores: [SQLiteStoreProvider(), LMDBStoreProvider()],
///   layers: [BatchedLayerProvider(), CachedLayerProvider(), ExpiringLayerProvider()])
/// let sessions = try await stacks.open("sessions", of: Session.self, codec: .cbor())
/// ```
///
/// The layers stand in the recommended order, whatever the order of the keys; see `LayerPlace`. Nothing is opened if any
/// key below `stores.sessions` is unknown, or has a value that is not possible; the error names it.
public struct Stacks: Sendable {
  private let sources: [ConfigurationSource]
  private let stores: [any StoreProvider]
  private let layers: [any LayerProvider]
  private let names: [String]?
  private let registry: StoreRegistry

  /// Creates stacks.
  ///
  /// - Parameters:
  ///   - sources: The sources of settings. For each key, the first source that has a value decides.
  ///   - stores: The kinds of store that the configuration can choose from.
  ///   - layers: The kinds of layers that it can choose from. Defaults to an empty list.
  ///   - names: The names of all stacks that your program opens. If a source has a stack that is not among them, and that
  ///     none of them uses, opening any stack throws an error that names it. Defaults to `nil`, so that sources can have
  ///     any stacks.
  public init(
    sources: [ConfigurationSource], stores: [any StoreProvider], layers: [any LayerProvider] = [],
    names: [String]? = nil
  ) {
    self.sources = sources
    self.stores = stores
    self.layers = layers
    self.names = names
    registry = StoreRegistry(providers: stores)
  }

  /// Opens a stack.
  ///
  /// You close the store. Opening the same stack again opens another store over the same data.
  ///
  /// - Parameters:
  ///   - name: The name of the stack: a lower-case letter, and then lower-case letters and digits.
  ///   - type: The type of the values.
  ///   - codec: The codec of the values. Layers such as `compressed` and `expiring` wrap it. The file of a store records
  ///     its name, and a store that was written with another one is refused.
  /// - Returns: The store with its layers.
  /// - Throws: `StoreError` with `invalidArgument` if the configuration of the stack is wrong, when nothing has been
  ///   opened; `unsupported` if a layer does not fit the store; the errors of opening the store and the layers.
  public func open<Value: Sendable>(
    _ name: String, of type: Value.Type = Value.self, codec: some Codec<Value>
  ) async throws -> AnyDataStore<Value> {
    try await plan(of: name).store(in: registry).open(codec: codec)
  }

  /// Opens a stack that is a queue, such as one with an address `queue:jobs`, or with the layer `queue`.
  ///
  /// ```swift
  /// let outbox = try await stacks.openQueue("outbox", of: Event.self, codec: .json())
  /// ```
  ///
  /// - Parameters:
  ///   - name: The name of the stack.
  ///   - type: The type of the items.
  ///   - codec: The codec of the items.
  /// - Throws: `StoreError` with `unsupported` if the stack is not a queue; the errors of ``open(_:of:codec:)``.
  public func openQueue<Element: Sendable>(
    _ name: String, of type: Element.Type = Element.self, codec: some Codec<Element>
  ) async throws -> any DurableQueue<Element> {
    let store = try await open(name, of: type, codec: codec)
    guard let queue = store.queue else {
      try await store.close()
      throw StoreError(
        .unsupported, during: .open, store: name,
        message:
          "stores.\(name).url is the address of a store and not of a queue; set stores.\(name).queue.prefix, if the "
          + "program offers this layer")
    }
    return queue
  }

  /// Reads settings of your own, which belong to no stack, with the same checks.
  ///
  /// ```swift
  /// let settings = try stacks.settings(QueueWorker.settings, of: "mail", in: "workers")
  /// ```
  ///
  /// - Parameters:
  ///   - settings: The settings, such as `concurrency`.
  ///   - name: The name in the section, such as `mail`: a lower-case letter, and then lower-case letters and digits.
  ///   - section: The first part of the keys, such as `workers`.
  /// - Throws: `StoreError` with `invalidArgument`, naming the key.
  public func settings(_ settings: [LayerSetting], of name: String, in section: String) throws -> LayerSettings {
    let reader = SettingsReader(section: section, name: name, sources: sources)
    try reader.checkNames(settings.map { [$0.name] })
    let values = try reader.settings(settings, of: nil)
    try values.checkRequired(settings)
    return values
  }

  /// Returns the address of the store of a stack.
  ///
  /// ```swift
  /// print(try stacks.url(of: "sessions"))  // sqlite:sessions.sqlite
  /// ```
  ///
  /// - Parameter name: The name of the stack.
  /// - Throws: `StoreError` with `invalidArgument`.
  public func url(of name: String) throws -> StoreURL { try plan(of: name).url }

  /// Checks the configuration of a stack without opening it.
  ///
  /// ```swift
  /// print(try stacks.describe("sessions"))
  /// ```
  ///
  /// - Parameter name: The name of the stack.
  /// - Returns: A description for people: the kind of the store, and the layers from the outside in, with their settings.
  ///   It does not have the location of the store, because it can be confidential.
  /// - Throws: `StoreError` with `invalidArgument`.
  public func describe(_ name: String) throws -> String {
    let plan = try plan(of: name)
    var lines = ["\(name): a store of the kind \(plan.url.scheme):"]
    for layer in plan.layers.reversed() {
      let settings = layer.settings.values.sorted { $0.key < $1.key }.map { "\($0.key) = \($0.value)" }
      lines.append("  \(layer.provider.name)" + (settings.isEmpty ? "" : ": \(settings.joined(separator: ", "))"))
    }
    return lines.joined(separator: "\n")
  }

  /// Returns a readable list of the stores and layers that a configuration can choose from.
  public func describe() -> String {
    var lines = ["Each stack NAME is below the key stores.NAME:"]
    lines += StackPlan.storeSettings.map { "  \($0.name): \($0.summary)" }
    lines.append("The kinds of store, as the scheme of url:")
    lines += registry.providers.map { "  \($0.scheme): \($0.summary)" }
    lines.append("The layers, from the outside in, each set to true or with its settings:")
    for layer in layers.sorted(by: { $0.place > $1.place }) {
      lines.append("  \(layer.name): \(layer.summary)")
      lines += layer.settings.map {
        "    \(layer.name).\($0.name): \($0.summary)\($0.requirement == nil ? "" : "; required"); \($0.kind)"
      }
    }
    return lines.joined(separator: "\n")
  }

  /// Returns the options with which a stack opens its store, such as the access.
  ///
  /// ```swift
  /// let isReadOnly = try stacks.options(of: "sessions").access != .readWrite
  /// ```
  ///
  /// - Parameter name: The name of the stack.
  /// - Throws: `StoreError` with `invalidArgument`.
  public func options(of name: String) throws -> StoreOptions { try plan(of: name).options }

  /// Returns the names of the layers of a stack, from the outside in.
  ///
  /// ```swift
  /// print(try stacks.layers(of: "sessions"))  // ["cached", "batched"]
  /// ```
  ///
  /// - Parameter name: The name of the stack.
  /// - Throws: `StoreError` with `invalidArgument`.
  public func layers(of name: String) throws -> [String] { try plan(of: name).layers.reversed().map(\.provider.name) }

  private func plan(of name: String) throws -> StackPlan {
    if let names {
      try StackPlan.checkNames(names, sources: sources, layers: layers)
      guard names.contains(name) else {
        throw StoreError(
          .invalidArgument, during: .open, store: name,
          message: "stores.\(name) is no stack of the program, which has: \(names.sorted().joined(separator: ", "))")
      }
    }
    return try StackPlan(name, sources: sources, stores: stores, layers: layers)
  }
}

extension Stacks: CustomStringConvertible {
  /// The names of the sources, without their values, which can be confidential.
  public var description: String { "Stacks[\(sources.map(\.description).joined(separator: ", "))]" }
}
#endif
