#if Configuration
public import Configuration
import Foundation
public import Larder

/// A provider of swift-configuration whose values are the entries of a store, so that settings change while programs run.
///
/// Other processes change settings through the store, for example with `larder set`. Every program that has the store open
/// sees the change when the store reports it.
///
/// ```swift
/// let store = try await SQLiteStore<JSONText>(path: "settings.db", codec: .jsonText)
/// let settings = try await StoreConfigProvider(store)
/// let reader = ConfigReader(provider: settings)
/// try await reader.watchInt(forKey: "limits.rate", default: 100) { updates in
///   for await rate in updates { limiter.rate = rate }
/// }
/// ```
///
/// ## Keys and values
///
/// The key of an entry is the key of the setting with dots, such as `limits.rate`, after the prefix. The value is JSON: a
/// string, a number, `true`, `false`, or an array of one of these. Bytes are a string in Base64. A value of another type
/// than the one that is asked for is an error and not a missing value, as in the environment and in JSON files.
///
/// ## Freshness
///
/// Values are kept in memory, so a read of one neither suspends nor waits for the store. There are at most ``entryLimit`` of
/// them, with at most ``byteLimit`` bytes. While the store cannot be read or has more, the values stay as they were.
/// ``fetchValue(forKey:type:)`` reads the store, and throws its errors.
///
/// ## Lifetime
///
/// The provider observes the store until it is released or the store is closed. It does not close the store.
public final class StoreConfigProvider<Base: ObservableStore>: ConfigProvider where Base.Value == JSONText {
  /// The most settings that a provider keeps, 10,000.
  public static var entryLimit: Int { settingLimit }

  /// The most bytes of keys and values that a provider keeps, 16 MiB.
  ///
  /// It is checked when the settings have been read. To bound what a store can have at all, give it a limit, such as that of a
  /// `BoundedStore`, and restrict who can write to it.
  public static var byteLimit: Int { settingByteLimit }

  /// The name of the provider in logs.
  public let providerName: String

  private let store: Base
  private let prefix: StoreKey
  private let secrets: SecretsSpecifier<String, String>
  private let state: SettingsState
  private let observation: Task<Void, Never>

  /// Creates a provider, and reads all settings.
  ///
  /// - Parameters:
  ///   - store: The store. Any observable store of `JSONText` fits, such as one with the codec `.jsonText`.
  ///   - prefix: The prefix of the keys of settings, for a store that has other entries, too. Defaults to an empty prefix.
  ///   - name: The name of the provider in logs. Defaults to `StoreConfigProvider`.
  ///   - secrets: The rule that says which values are secrets, by the key with dots and the JSON text of the value. Logs do
  ///     not show them. Defaults to `SecretsSpecifier.none`.
  ///   - clock: The clock of the time to the next attempt if the store cannot be read. Defaults to a `ContinuousClock`.
  /// - Throws: `StoreError` with `unsupported` if there are more than ``entryLimit`` settings, or more than ``byteLimit`` bytes
  ///   of them; the errors of reading the store.
  public init(
    _ store: Base, prefix: StoreKey = "", name: String = "StoreConfigProvider",
    secrets: SecretsSpecifier<String, String> = .none, clock: any Clock<Duration> = ContinuousClock()
  ) async throws {
    (self.store, self.prefix, self.secrets, providerName) = (store, prefix, secrets, name)
    let state = SettingsState(name: name, prefix: prefix, secrets: secrets)
    self.state = state
    let storeName = store.information.name
    try state.show(try await store.entries(in: .prefix(prefix), limit: Self.entryLimit + 1), store: storeName)
    let states = store.entries(observing: .prefix(prefix), limit: Self.entryLimit + 1, clock: clock)
    observation = Task {
      while !Task.isCancelled {
        do {
          for try await entries in states { try state.show(entries, store: storeName) }
          return
        } catch {
          // The values stay as they were, as documented. The next attempt is made after a pause.
          do { try await clock.sleep(for: .seconds(1)) } catch { return }
        }
      }
    }
  }

  deinit {
    observation.cancel()
  }

  /// Returns the value of a setting, as of the last reported change.
  ///
  /// - Throws: An error of swift-configuration if the value has another type; `StoreError` with `invalidArgument` if it is
  ///   null or an object.
  public func value(forKey key: AbsoluteConfigKey, type: ConfigType) throws -> LookupResult {
    try state.current.value(forKey: key, type: type)
  }

  /// Returns the value of a setting from the store.
  ///
  /// - Throws: `StoreError`; an error of swift-configuration if the value has another type.
  public func fetchValue(forKey key: AbsoluteConfigKey, type: ConfigType) async throws -> LookupResult {
    let name = SettingsSnapshot.name(of: key)
    guard let storeKey = SettingsSnapshot.storeKey(name, prefix),
      let text = try await store.value(forKey: storeKey)
    else { return LookupResult(encodedKey: name, value: nil) }
    return try Setting(name, text, secrets).value(forKey: key, type: type)
  }

  /// Calls a closure with the values of a setting: the current one, and each later one that differs.
  ///
  /// If values change faster than the closure takes them, it sees the latest.
  ///
  /// - Throws: The error that the closure throws.
  public func watchValue<Return: ~Copyable>(
    forKey key: AbsoluteConfigKey, type: ConfigType,
    updatesHandler: (_ updates: ConfigUpdatesAsyncSequence<Result<LookupResult, any Error>, Never>) async throws ->
      Return
  ) async throws -> Return {
    let updates = state.updates { $0[key]?.text }
    return try await updatesHandler(
      ConfigUpdatesAsyncSequence(updates.map { snapshot in Result { try snapshot.value(forKey: key, type: type) } }))
  }

  /// Returns all settings, as of the last reported change.
  public func snapshot() -> any ConfigSnapshot { state.current }

  /// Calls a closure with all settings: the current ones, and those after each change.
  ///
  /// If they change faster than the closure takes them, it sees the latest.
  ///
  /// - Throws: The error that the closure throws.
  public func watchSnapshot<Return: ~Copyable>(
    updatesHandler: (_ updates: ConfigUpdatesAsyncSequence<any ConfigSnapshot, Never>) async throws -> Return
  ) async throws -> Return {
    let updates = state.updates { $0.settings.mapValues(\.text) }
    return try await updatesHandler(ConfigUpdatesAsyncSequence(updates.map { $0 as any ConfigSnapshot }))
  }
}

/// The most settings of a provider.
private let settingLimit = 10_000

/// The most bytes of the keys and values of a provider.
private let settingByteLimit = 16 << 20

/// A setting as JSON text, and what it says.
private struct Setting: Sendable {
  let text: JSONText
  private let parsed: Result<JSONSnapshot, any Error>
  private let isSecret: Bool

  init(_ name: String, _ text: JSONText, _ secrets: SecretsSpecifier<String, String>) {
    self.text = text
    isSecret = secrets.isSecret(key: name, value: text.description)
    let document = Array("{".utf8) + JSONText(string: name).bytes + Array(":".utf8) + text.bytes + Array("}".utf8)
    parsed = Result { try JSONSnapshot(data: document.span.bytes, providerName: name, parsingOptions: .default) }
  }

  /// Returns the value.
  ///
  /// - Throws: An error of swift-configuration if the text is no setting, or the value has another type.
  func value(forKey key: AbsoluteConfigKey, type: ConfigType) throws -> LookupResult {
    var result = try parsed.get().value(forKey: key, type: type)
    guard result.value != nil else {
      throw StoreError(
        .invalidArgument, during: .value, store: result.encodedKey,
        message:
          "the setting is null or an object, but must be a string, a number, true, false, or an array of one of these")
    }
    if isSecret { result.value = result.value.map { ConfigValue($0.content, isSecret: true) } }
    return result
  }
}

/// All settings of a provider at one time.
private struct SettingsSnapshot: ConfigSnapshot {
  let providerName: String
  let prefix: StoreKey
  var settings: [StoreKey: Setting] = [:]

  /// The number of the snapshot.
  ///
  /// It increases.
  var number: UInt64 = 1

  func value(forKey key: AbsoluteConfigKey, type: ConfigType) throws -> LookupResult {
    guard let setting = self[key] else { return LookupResult(encodedKey: Self.name(of: key), value: nil) }
    return try setting.value(forKey: key, type: type)
  }

  subscript(key: AbsoluteConfigKey) -> Setting? {
    Self.storeKey(Self.name(of: key), prefix).flatMap { settings[$0] }
  }

  static func name(of key: AbsoluteConfigKey) -> String { key.components.joined(separator: ".") }

  /// Returns the key of the entry of a setting, or `nil` if no entry can have it.
  static func storeKey(_ name: String, _ prefix: StoreKey) -> StoreKey? {
    let count = prefix.count + name.utf8.count
    return count == 0 || count > StoreKey.maximumLength ? nil : StoreKey(bytes: prefix.bytes + Array(name.utf8))
  }
}

/// The latest settings, and those who wait for later ones.
private final class SettingsState: Sendable {
  private typealias Watcher = @Sendable (SettingsSnapshot) -> Void

  private let secrets: SecretsSpecifier<String, String>
  private let state: Locked<(current: SettingsSnapshot, watchers: [UInt64: Watcher], watcherCount: UInt64)>

  init(name: String, prefix: StoreKey, secrets: SecretsSpecifier<String, String>) {
    self.secrets = secrets
    state = Locked((SettingsSnapshot(providerName: name, prefix: prefix), [:], 0))
  }

  var current: SettingsSnapshot { state.withLock { $0.current } }

  /// Replaces all settings.
  ///
  /// - Throws: `StoreError` with `unsupported` if there are too many, or too many bytes of them.
  func show(_ entries: [StoreEntry<JSONText>], store: String) throws {
    let previous = current
    guard entries.count <= settingLimit else {
      throw StoreError(
        .unsupported, during: .observe, store: store,
        message: "a provider has at most \(settingLimit) settings; use a prefix")
    }
    guard entries.reduce(0, { $0 + $1.key.count + $1.value.bytes.count }) <= settingByteLimit else {
      throw StoreError(
        .unsupported, during: .observe, store: store,
        message: "a provider has at most \(settingByteLimit) bytes of settings; use a prefix, or remove large values")
    }
    var next = previous
    next.settings = [:]
    next.number += 1
    for entry in entries {
      // A setting that has not changed is not parsed again.
      let known = previous.settings[entry.key].flatMap { $0.text == entry.value ? $0 : nil }
      next.settings[entry.key] =
        known
        ?? Setting(
          String(decoding: entry.key.bytes.dropFirst(previous.prefix.count), as: UTF8.self), entry.value, secrets)
    }
    let watchers = state.withLock { [next] state in
      state.current = next
      return state.watchers.values
    }
    for watcher in watchers { watcher(next) }
  }

  /// Returns the current settings and later ones whose part differs from that of the previous ones.
  func updates<Part: Equatable & Sendable>(
    of part: @escaping @Sendable (SettingsSnapshot) -> Part
  ) -> AsyncStream<SettingsSnapshot> {
    let (stream, continuation) = AsyncStream.makeStream(of: SettingsSnapshot.self, bufferingPolicy: .bufferingNewest(1))
    let latest = Locked<(number: UInt64, part: Part?)>((0, nil))
    let watcher: Watcher = { snapshot in
      let next = part(snapshot)
      latest.withLock { latest in
        // The first snapshot may come after a later one.
        guard snapshot.number > latest.number else { return }
        // A part can be missing, so `nil` alone does not say that there was none before.
        if latest.number == 0 || latest.part != next { continuation.yield(snapshot) }
        latest = (snapshot.number, next)
      }
    }
    let (number, current) = state.withLock { state in
      state.watcherCount += 1
      state.watchers[state.watcherCount] = watcher
      return (state.watcherCount, state.current)
    }
    watcher(current)
    continuation.onTermination = { [weak self] _ in
      _ = self?.state.withLock { $0.watchers.removeValue(forKey: number) }
    }
    return stream
  }
}
#endif
