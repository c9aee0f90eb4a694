#if Configuration
import Configuration
import Larder

/// The plan of one stack, as a configuration says: the address of the store and the layers with their settings.
struct StackPlan: Sendable {
  /// A layer of the stack.
  struct Layer: Sendable {
    let provider: any LayerProvider
    let settings: LayerSettings
  }

  /// The settings of the store itself.
  static let storeSettings = [
    LayerSetting("url", .text, "the address of the store, such as sqlite:shop.db; required"),
    LayerSetting("durability", .choice(["synced", "buffered"]), "the durability of a write; by default, synced"),
    LayerSetting(
      "access", .choice(["readWrite", "readOnly", "immutable"]), "the access to the data; by default, readWrite"),
    LayerSetting("create", .flag, "whether a missing store is created; by default, it is"),
  ]

  let url: StoreURL
  let options: StoreOptions

  /// The layers, the one next to the store first.
  let layers: [Layer]

  /// Reads the plan of a stack.
  ///
  /// - Parameters:
  ///   - name: The name of the stack.
  ///   - sources: The sources. The first one that has a value decides.
  ///   - stores: The kinds of store.
  ///   - providers: The kinds of layers.
  /// - Throws: `StoreError` with `invalidArgument` or `unsupported`, naming the key.
  init(
    _ name: String, sources: [ConfigurationSource], stores: [any StoreProvider], layers providers: [any LayerProvider]
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
    self.url = url
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
    layers = try providers.compactMap { provider in
      try reader.layerSettings(provider).map { Layer(provider: provider, settings: $0) }
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
      try layer.provider.check(layer.settings)
    }
  }
}
#endif
