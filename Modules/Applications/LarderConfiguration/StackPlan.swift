#if Configuration
import Configuration
import Larder

/// The plan of one stack, as a configuration says: the address of the store and the layers with their settings.
struct StackPlan: Sendable {
  /// A layer of the stack.
  struct Layer: Sendable {
    let provider: any LayerProvider
    let settings: LayerSettings

    /// The plans of the other stacks that the layer uses, by the names of its settings.
    let stacks: [String: StackPlan]
  }

  /// The settings of the store itself.
  static let storeSettings = [
    LayerSetting("url", .text, "the address of the store, such as sqlite:shop.db; required"),
    LayerSetting("durability", .choice(["synced", "buffered"]), "the durability of a write; by default, synced"),
    LayerSetting(
      "access", .choice(["readWrite", "readOnly", "immutable"]), "the access to the data; by default, readWrite"),
    LayerSetting("create", .flag, "whether a missing store is created; by default, it is"),
  ]

  let name: String
  let url: StoreURL
  let options: StoreOptions

  /// A Boolean value that indicates whether the address is that of a queue.
  let opensQueue: Bool

  /// The layers, the one next to the store first.
  let layers: [Layer]

  /// Reads the plan of a stack.
  ///
  /// - Parameters:
  ///   - name: The name of the stack.
  ///   - sources: The sources. The first one that has a value decides.
  ///   - stores: The kinds of store.
  ///   - providers: The kinds of layers.
  ///   - users: The names of the stacks that use this one. Defaults to an empty list.
  /// - Throws: `StoreError` with `invalidArgument` or `unsupported`, naming the key.
  init(
    _ name: String, sources: [ConfigurationSource], stores: [any StoreProvider], layers providers: [any LayerProvider],
    users: [String] = []
  ) throws {
    let reader = SettingsReader(section: "stores", name: name, sources: sources)
    var keys = StackPlan.storeSettings.map { [$0.name] }
    for provider in providers { keys += [[provider.name]] + provider.settings.map { [provider.name, $0.name] } }
    try reader.checkNames(keys)
    let store = try reader.settings(StackPlan.storeSettings, of: nil)
    guard let address = store.text("url") else {
      throw store.error("url", "is missing; set the address of the store, such as sqlite:shop.db")
    }
    // Text without a scheme can have a colon too, after a password.
    guard let url = try? StoreURL(address), url.scheme.wholeMatch(of: /[a-z][a-z0-9+.-]*/) != nil else {
      throw store.error(
        "url", "has no scheme; write the kind of store and a colon before the location, as in sqlite:shop.db")
    }
    guard let provider = stores.first(where: { $0.scheme == url.scheme }) else {
      let known = stores.map(\.scheme).sorted().map { "\($0):" }.joined(separator: ", ")
      throw store.error("url", "has the scheme \(url.scheme):, which the program does not offer; it offers \(known)")
    }
    (self.name, self.url, opensQueue) = (name, url, provider.opensQueues)
    let access: StoreAccess =
      switch store.text("access") {
      case "readOnly": .readOnly
      case "immutable": .immutable
      default: .readWrite
      }
    if access != .readWrite, store.flag("create") == true {
      throw store.error("create", "contradicts \(store.key("access")): a store that is only read is not created")
    }
    options = StoreOptions(
      createsIfMissing: store.flag("create") ?? true,
      durability: store.text("durability") == "buffered" ? .buffered : .synced,
      access: access)
    let layers = try providers.compactMap { provider in
      try reader.layerSettings(provider).map { (provider: provider, settings: $0) }
    }.sorted { $0.provider.place < $1.provider.place }
    for (lower, upper) in zip(layers, layers.dropFirst()) where lower.provider.place == upper.provider.place {
      throw upper.settings.error(nil, "contradicts \(lower.settings.layerKey); set one of them")
    }
    for layer in layers {
      if provider.opensQueues, !layer.provider.fitsQueues {
        throw layer.settings.error(
          nil, "does not fit \(store.key("url")), which is the address of a queue; remove one of them")
      }
      if let other = layers.first(where: { layer.provider.contradictions.contains($0.provider.name) }) {
        throw layer.settings.error(nil, "contradicts \(other.settings.layerKey); set one of them")
      }
      try layer.settings.checkRequired(layer.provider.settings)
      try layer.provider.check(layer.settings)
    }
    self.layers = try layers.map { layer in
      var stacks: [String: StackPlan] = [:]
      for (setting, other) in layer.settings.stackNames(layer.provider) {
        func error(_ message: String) -> StoreError { layer.settings.error(setting, "is \(other), \(message)") }
        guard !(users + [name]).contains(other) else {
          throw error("which uses this stack itself; set the name of another stack")
        }
        let plan = try StackPlan(
          other, sources: sources, stores: stores, layers: providers, users: users + [name])
        guard plan.url != url else { throw error("which has the same address; set another stores.\(other).url") }
        guard !plan.isQueue else { throw error("which is a queue; set the name of a stack that is a store") }
        stacks[setting] = plan
      }
      return Layer(provider: layer.provider, settings: layer.settings, stacks: stacks)
    }
  }

  /// A Boolean value that indicates whether the stack is a queue.
  private var isQueue: Bool { opensQueue || layers.contains { $0.provider.place == .queue } }

  /// Returns the stack, to be opened with a registry.
  func store(in registry: StoreRegistry) -> any OpenableStore {
    var stack: any OpenableStore = RegisteredStore(registry: registry, plan: self)
    for layer in layers {
      let settings = LayerSettings(
        stack: name, layerKey: layer.settings.layerKey, values: layer.settings.values,
        stores: layer.stacks.mapValues { $0.store(in: registry) })
      stack = LayeredStore(base: stack, provider: layer.provider, settings: settings)
    }
    return stack
  }

  /// Checks that the sources have no other stacks than those of a program, and those that these use.
  ///
  /// - Parameters:
  ///   - names: The names of the stacks of the program.
  ///   - sources: The sources.
  ///   - providers: The kinds of layers.
  /// - Throws: `StoreError` with `invalidArgument`, which has the unknown name and the known ones.
  static func checkNames(
    _ names: [String], sources: [ConfigurationSource], layers providers: [any LayerProvider]
  ) throws {
    var known: Set<String> = []
    var remaining = names
    while let name = remaining.popLast() {
      guard known.insert(name).inserted else { continue }
      let reader = SettingsReader(section: "stores", name: name, sources: sources)
      for provider in providers where provider.settings.contains(where: { $0.kind == .stack }) {
        let settings = try reader.settings(provider.settings.filter { $0.kind == .stack }, of: provider.name)
        remaining += settings.stackNames(provider).values
      }
    }
    for source in sources {
      let unknown = source.names(below: ["stores"])
        .subtracting(known.flatMap { source.names(below: ["stores", $0]) })
      guard let wrong = unknown.min() else { continue }
      throw StoreError(
        .invalidArgument, during: .open,
        message: "\(wrong) in \(source.snapshot.providerName) is of no stack of the program, which has: "
          + known.sorted().joined(separator: ", "))
    }
  }
}

extension LayerSettings {
  /// Returns the names of other stacks, by the names of the settings that have them.
  fileprivate func stackNames(_ provider: any LayerProvider) -> [String: String] {
    var names: [String: String] = [:]
    for setting in provider.settings where setting.kind == .stack { names[setting.name] = text(setting.name) }
    return names
  }
}

/// A store of a registry that is not open yet.
private struct RegisteredStore: OpenableStore {
  let registry: StoreRegistry
  let plan: StackPlan

  func open<Value: Sendable>(codec: some Codec<Value>) async throws -> AnyDataStore<Value> {
    do {
      return try await registry.open(plan.url, codec: codec, options: plan.options)
    } catch let error as StoreError where error.code == .notFound {
      // The store does not know the keys.
      let key: String
      if plan.options.access != .readWrite {
        key = "access"
      } else if !plan.options.createsIfMissing {
        key = "create"
      } else {
        throw error
      }
      throw StoreError(
        .notFound, during: .open, store: plan.name,
        message: "\(error.message); stores.\(plan.name).\(key) does not permit creating it", underlying: error)
    }
  }
}

/// A store with one more layer.
private struct LayeredStore: OpenableStore {
  let base: any OpenableStore
  let provider: any LayerProvider
  let settings: LayerSettings

  func open<Value: Sendable>(codec: some Codec<Value>) async throws -> AnyDataStore<Value> {
    try await provider.open(codec: codec, over: base, settings: settings)
  }
}
#endif
