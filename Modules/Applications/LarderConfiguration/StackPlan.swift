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
  /// - Throws: `StoreError` with `invalidArgument` or `unsupported`, which names the key.
  init(
    _ name: String, sources: [ConfigurationSource], stores: [any StoreProvider], layers providers: [any LayerProvider]
  ) throws {
    let reader = StackReader(stack: name, sources: sources)
    try reader.checkNames(providers)
    let store = try reader.settings(StackPlan.storeSettings, of: nil)
    guard let address = store.text("url") else {
      throw store.error("url", "is missing; set the address of the store, such as sqlite:shop.db")
    }
    guard let url = try? StoreURL(address) else {
      throw store.error(
        "url", "has no scheme; write the kind of store and a colon before the location, as in sqlite:shop.db")
    }
    guard stores.contains(where: { $0.scheme == url.scheme }) else {
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
      try layer.provider.check(layer.settings)
    }
  }
}

/// A reader of the values of one stack in several sources.
private struct StackReader {
  let stack: String
  let sources: [ConfigurationSource]

  /// Checks that each name in the sources below the stack is that of a setting.
  ///
  /// - Throws: `StoreError` with `invalidArgument`, which has the name.
  func checkNames(_ providers: [any LayerProvider]) throws {
    // Names are compared as the source encodes them. The separators of words and of parts may be the same there, so the
    // stack's name has neither.
    guard stack.wholeMatch(of: /[a-z][a-z0-9]*/) != nil else {
      throw StoreError(
        .invalidArgument, during: .open, store: stack,
        message: "the name of a stack must begin with a lower-case letter and have only lower-case letters and digits")
    }
    var keys = StackPlan.storeSettings.map { [$0.name] }
    for provider in providers { keys += [[provider.name]] + provider.settings.map { [provider.name, $0.name] } }
    for source in sources {
      let prefix = source.encodedName(of: ["stores", stack])
      let known = Set(keys.map { source.encodedName(of: ["stores", stack] + $0) })
      let unknown = source.names.filter { name in
        guard name.hasPrefix(prefix), !known.contains(name) else { return false }
        return name.dropFirst(prefix.count).first.map { !$0.isLetter && !$0.isNumber } ?? true
      }
      guard let name = unknown.min() else { continue }
      let nearest = known.min { $0.distance(to: name) < $1.distance(to: name) }
      throw StoreError(
        .invalidArgument, during: .open, store: stack,
        message: "\(name) in \(source.snapshot.providerName) is no setting of a stack"
          + (nearest.map { "; did you mean \($0)?" } ?? ""))
    }
  }

  /// Returns the settings of a layer, or `nil` if the stack does not have it.
  func layerSettings(_ provider: any LayerProvider) throws -> LayerSettings? {
    let settings = try settings(provider.settings, of: provider.name)
    let own = LayerSetting(provider.name, .flag, provider.summary)
    let flag = try self.settings([own], of: nil).flag(provider.name)
    if flag == false, let name = settings.values.keys.min() {
      throw settings.error(name, "contradicts \(settings.layerKey), which is false; remove one of them")
    }
    return flag ?? !settings.values.isEmpty ? settings : nil
  }

  /// Reads the settings of a layer, or of the store itself.
  func settings(_ settings: [LayerSetting], of layer: String?) throws -> LayerSettings {
    let path = ["stores", stack] + (layer.map { [$0] } ?? [])
    let empty = LayerSettings(stack: stack, layerKey: path.joined(separator: "."))
    var values: [String: LayerSettings.Value] = [:]
    for setting in settings {
      guard let source = sources.first(where: { $0.hasValue(forKey: path + [setting.name]) }) else { continue }
      guard let value = source.value(forKey: path + [setting.name], setting.kind) else {
        throw empty.error(setting.name, "in \(source.snapshot.providerName) must be \(setting.kind)")
      }
      values[setting.name] = value
    }
    return LayerSettings(stack: stack, layerKey: empty.layerKey, values: values)
  }
}

extension ConfigurationSource {
  /// Returns a key as the source encodes it.
  ///
  /// A source answers with it for a type that the value has, or if there is no value. All values have one of these types.
  fileprivate func encodedName(of key: [String]) -> String {
    for type in [ConfigType.string, .bool, .stringArray, .boolArray] {
      if let result = try? snapshot.value(forKey: AbsoluteConfigKey(key), type: type) { return result.encodedKey }
    }
    return key.joined(separator: ".")
  }

  /// Returns whether the source has a value of any type.
  fileprivate func hasValue(forKey key: [String]) -> Bool {
    do {
      return try snapshot.value(forKey: AbsoluteConfigKey(key), type: .string).value != nil
    } catch {
      // A value of another type is there.
      return true
    }
  }

  /// Returns a value, or `nil` if it is not of the kind.
  fileprivate func value(forKey key: [String], _ kind: LayerSetting.Kind) -> LayerSettings.Value? {
    func content(_ type: ConfigType) -> ConfigContent? {
      // A provider throws if the value has another type.
      try? snapshot.value(forKey: AbsoluteConfigKey(key), type: type).value?.content
    }
    func text() -> String? { if case .string(let text) = content(.string) { text } else { nil } }
    func number() -> Int? { if case .int(let number) = content(.int) { number } else { nil } }
    switch kind {
    case .flag:
      guard case .bool(let flag) = content(.bool) else { return nil }
      return .flag(flag)
    case .count(let range):
      return number().flatMap { range.contains($0) ? .number($0) : nil }
    case .bytes:
      return (number() ?? text().flatMap(UnitText.byteCount)).flatMap { $0 > 0 ? .number($0) : nil }
    case .duration:
      guard let time = text().flatMap(UnitText.duration), time > .zero, time <= .seconds(36_500 * 86_400) else {
        return nil
      }
      return .duration(time)
    case .text:
      return text().flatMap { $0.isEmpty ? nil : .text($0) }
    case .choice(let words):
      return text().flatMap { words.contains($0) ? .text($0) : nil }
    }
  }
}

extension String {
  /// Returns the number of characters that must be inserted, removed or replaced to get another text.
  fileprivate func distance(to other: String) -> Int {
    var row = Array(0...other.count)
    for (index, character) in enumerated() {
      var previous = row[0]
      row[0] = index + 1
      for (column, candidate) in other.enumerated() {
        (previous, row[column + 1]) = (
          row[column + 1], Swift.min(previous + (character == candidate ? 0 : 1), row[column] + 1, row[column + 1] + 1)
        )
      }
    }
    return row[other.count]
  }
}
#endif
