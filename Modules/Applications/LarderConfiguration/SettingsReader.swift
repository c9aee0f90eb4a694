#if Configuration
import Configuration
import Larder

/// A reader of the values below one name, such as `stores.sessions`, in several sources.
struct SettingsReader {
  /// The section, such as `stores`.
  let section: String

  /// The name in the section, such as that of a stack.
  let name: String

  /// The sources, of which the first one that has a value decides.
  let sources: [ConfigurationSource]

  /// The form of the name of a stack.
  fileprivate static var nameForm: Regex<Substring> { /[a-z][a-z0-9]*/ }

  /// Checks that each name in the sources below the section and the name is that of a setting.
  ///
  /// - Parameter keys: The keys of all settings.
  /// - Throws: `StoreError` with `invalidArgument`, which has the name.
  func checkNames(_ keys: [[String]]) throws {
    // Names are compared as the source encodes them. The separators of words and of parts may be the same there, so the
    // name has neither.
    guard name.wholeMatch(of: Self.nameForm) != nil else {
      throw StoreError(
        .invalidArgument, during: .open, store: name,
        message: "the name must begin with a lower-case letter and have only lower-case letters and digits")
    }
    for source in sources {
      let known = Set(keys.map { source.encodedName(of: [section, name] + $0) })
      let unknown = source.names(below: [section, name]).subtracting(known)
      try checkValues(keys, in: source)
      guard let wrong = unknown.min() else { continue }
      let nearest = known.min { $0.distance(to: wrong) < $1.distance(to: wrong) }
      throw StoreError(
        .invalidArgument, during: .open, store: name,
        message: "\(wrong) in \(source.snapshot.providerName) is no setting"
          + (nearest.map { "; did you mean \($0)?" } ?? ""))
    }
  }

  /// Checks that each setting that a source names has a value there.
  ///
  /// A `null` in JSON and a merged mapping in YAML have a name and no value, and a layer such as `encrypted` would be missing.
  private func checkValues(_ keys: [[String]], in source: ConfigurationSource) throws {
    let names = Set(source.names)
    for key in keys {
      let path = [section, name] + key
      guard names.contains(source.encodedName(of: path)), !source.hasAnyValue(forKey: path) else { continue }
      throw StoreError(
        .invalidArgument, during: .open, store: name,
        message:
          "\(source.encodedName(of: path)) in \(source.snapshot.providerName) has no value; set one, or remove it")
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
    let path = [section, name] + (layer.map { [$0] } ?? [])
    let empty = LayerSettings(stack: name, layerKey: path.joined(separator: "."))
    var values: [String: LayerSettings.Value] = [:]
    for setting in settings {
      guard let source = sources.first(where: { $0.hasValue(forKey: path + [setting.name]) }) else { continue }
      guard let value = source.value(forKey: path + [setting.name], setting.kind) else {
        throw empty.error(setting.name, "in \(source.snapshot.providerName) must be \(setting.kind)")
      }
      values[setting.name] = value
    }
    return LayerSettings(stack: name, layerKey: empty.layerKey, values: values)
  }
}

extension ConfigurationSource {
  /// Returns the names that begin with the parts of a key.
  func names(below key: [String]) -> Set<String> {
    let prefix = encodedName(of: key)
    return Set(
      names.filter { name in
        name.hasPrefix(prefix) && name.dropFirst(prefix.count).first.map { !$0.isLetter && !$0.isNumber } ?? true
      })
  }

  /// Returns a key as the source encodes it.
  ///
  /// A source answers with it for a type that the value has, or if there is no value. All values have one of these types.
  fileprivate func encodedName(of key: [String]) -> String {
    for type in [ConfigType.string, .bool, .stringArray, .boolArray] {
      if let result = try? snapshot.value(forKey: AbsoluteConfigKey(key), type: type) { return result.encodedKey }
    }
    return key.joined(separator: ".")
  }

  /// Returns whether the source has a value of any type, or a flag without a value.
  fileprivate func hasAnyValue(forKey key: [String]) -> Bool {
    hasValue(forKey: key) || (try? snapshot.value(forKey: AbsoluteConfigKey(key), type: .bool).value) != nil
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
    func text() -> String? {
      if let text = textsWithCommas[encodedName(of: key)] { return text }
      return if case .string(let text) = content(.string) { text } else { nil }
    }
    func number() -> Int? {
      // A provider of JSON returns 1 for `true`.
      guard !flagNames.contains(encodedName(of: key)), case .int(let number) = content(.int) else { return nil }
      return number
    }
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
    case .stack:
      return text().flatMap { $0.wholeMatch(of: SettingsReader.nameForm) == nil ? nil : .text($0) }
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
