/// A setting that a layer has.
///
/// ```swift
/// let setting = LayerSetting("entries", .count(1...1_000_000), "the largest number of entries")
/// ```
public struct LayerSetting: Sendable, Hashable {
  /// The kind of value of a setting.
  public enum Kind: Sendable, Hashable {
    /// `true` or `false`.
    case flag

    /// A whole number in a range.
    case count(ClosedRange<Int>)

    /// A number of bytes greater than zero, alone or with a unit, such as `64MB`; see ``UnitText/byteCount(_:)``.
    case bytes

    /// A duration greater than zero and of at most 36,500 days, such as `30m`; see ``UnitText/duration(_:)``.
    case duration

    /// A text that is not empty.
    case text

    /// One of some words.
    case choice([String])

    /// The name of another stack of the same configuration; see ``LayerSettings/store(_:)``.
    case stack
  }

  /// The name, in the form of a layer's name, such as `entries`.
  public let name: String

  /// The kind of value.
  public let kind: Kind

  /// A description for people, in one line.
  public let summary: String

  /// The way out if the setting is missing, such as "set the most entries", or `nil` if the layer does not require it.
  public let requirement: String?

  /// Creates a setting.
  ///
  /// - Parameters:
  ///   - name: The name, such as `entries`.
  ///   - kind: The kind of value.
  ///   - summary: A description for people, in one line.
  ///   - requirement: The way out if the setting is missing, such as "set the most entries, such as 10000". A layer
  ///     without it is not opened. Defaults to `nil`, for a setting that may be missing.
  public init(_ name: String, _ kind: Kind, _ summary: String, required requirement: String? = nil) {
    self.name = name
    self.kind = kind
    self.summary = summary
    self.requirement = requirement
  }
}

extension LayerSetting.Kind: CustomStringConvertible {
  /// A description of the values, as an error says it.
  public var description: String {
    switch self {
    case .flag: "true or false"
    case .count(let range) where range.upperBound == .max: "a whole number of at least \(range.lowerBound)"
    case .count(let range): "a whole number from \(range.lowerBound) to \(range.upperBound)"
    case .bytes: "a size greater than zero, such as 64MB"
    case .duration: "a duration from 1ms to 36500d, such as 30m"
    case .text: "a text that is not empty"
    case .choice(let words): words.joined(separator: " or ")
    case .stack: "the name of another stack, which has only lower-case letters and digits, such as copies"
    }
  }
}

/// The settings of one layer in one stack.
///
/// ```swift
/// let settings = LayerSettings(
///   stack: "sessions", layerKey: "stores.sessions.cached", values: ["entries": .number(50_000)])
/// ```
public struct LayerSettings: Sendable {
  /// The value of a setting.
  public enum Value: Sendable, Hashable {
    /// `true` or `false`.
    case flag(Bool)

    /// A whole number, or a number of bytes.
    case number(Int)

    /// A duration.
    case duration(Duration)

    /// A text, or the name of a stack.
    case text(String)
  }

  /// The name of the stack, such as `sessions`.
  public let stack: String

  /// The key of the layer, such as `stores.sessions.cached`.
  public let layerKey: String

  /// The values by the names of the settings.
  ///
  /// Settings that a configuration does not have are missing.
  public let values: [String: Value]

  /// The other stacks by the names of the settings that name them.
  ///
  /// It is empty until the layer is opened.
  public let stores: [String: any OpenableStore]

  /// Creates settings.
  ///
  /// - Parameters:
  ///   - stack: The name of the stack.
  ///   - layerKey: The key of the layer.
  ///   - values: The values by the names of the settings. Defaults to no values.
  ///   - stores: The other stacks by the names of the settings that name them. Defaults to no stacks.
  public init(
    stack: String, layerKey: String, values: [String: Value] = [:], stores: [String: any OpenableStore] = [:]
  ) {
    self.stack = stack
    self.layerKey = layerKey
    self.values = values
    self.stores = stores
  }

  /// Returns a flag, or `nil` if it is not set.
  ///
  /// - Parameter name: The name of the setting.
  public func flag(_ name: String) -> Bool? {
    if case .flag(let flag) = values[name] { flag } else { nil }
  }

  /// Returns a whole number, or `nil` if it is not set.
  ///
  /// - Parameter name: The name of the setting.
  public func count(_ name: String) -> Int? {
    if case .number(let number) = values[name] { number } else { nil }
  }

  /// Returns a number of bytes, or `nil` if it is not set.
  ///
  /// - Parameter name: The name of the setting.
  public func byteCount(_ name: String) -> Int? { count(name) }

  /// Returns a duration, or `nil` if it is not set.
  ///
  /// - Parameter name: The name of the setting.
  public func duration(_ name: String) -> Duration? {
    if case .duration(let duration) = values[name] { duration } else { nil }
  }

  /// Returns a text, or `nil` if it is not set.
  ///
  /// - Parameter name: The name of the setting.
  public func text(_ name: String) -> String? {
    if case .text(let text) = values[name] { text } else { nil }
  }

  /// Returns the stack that a setting of the kind ``LayerSetting/Kind/stack`` names.
  ///
  /// Open it in ``LayerProvider/open(codec:over:settings:)``. The layer owns it, and closes it with the store below. If the
  /// layer does not require the setting, use ``stores``.
  ///
  /// - Parameter name: The name of the setting.
  /// - Throws: `StoreError` with `invalidArgument` if there is no such stack.
  public func store(_ name: String) throws -> any OpenableStore {
    guard let store = stores[name] else {
      throw error(name, "is \(text(name) ?? "not set"), which is not among the stacks")
    }
    return store
  }

  /// Checks that the settings that a layer requires are set.
  ///
  /// - Parameter settings: All settings of the layer.
  /// - Throws: `StoreError` with `invalidArgument`, naming the key of a missing setting and its requirement.
  public func checkRequired(_ settings: [LayerSetting]) throws {
    for setting in settings where values[setting.name] == nil {
      if let requirement = setting.requirement { throw error(setting.name, "is required; \(requirement)") }
    }
  }

  /// Returns the key of a setting, such as `stores.sessions.cached.entries`.
  ///
  /// - Parameter name: The name of the setting.
  public func key(_ name: String) -> String { "\(layerKey).\(name)" }

  /// Returns an error that names the key of a setting.
  ///
  /// - Parameters:
  ///   - name: The name of the setting, or `nil` for the layer as a whole.
  ///   - message: What is wrong, and the way out, as a continuation of the key, such as "is needed: …".
  public func error(_ name: String?, _ message: String) -> StoreError {
    StoreError(
      .invalidArgument, during: .open, store: stack, message: "\(name.map(key) ?? layerKey) \(message)")
  }

  /// Returns the error of a layer that does not fit what is below it, with the key of the layer.
  ///
  /// - Parameter error: The error of creating the layer.
  public func misfit(_ error: StoreError) -> StoreError {
    StoreError(
      error.code, during: .open, store: stack, message: "\(layerKey) does not fit: \(error.message)", underlying: error)
  }
}

extension LayerSettings.Value: CustomStringConvertible {
  /// The value as people write it.
  public var description: String {
    switch self {
    case .flag(let flag): "\(flag)"
    case .number(let number): "\(number)"
    case .duration(let duration): "\(duration)"
    case .text(let text): text
    }
  }
}
