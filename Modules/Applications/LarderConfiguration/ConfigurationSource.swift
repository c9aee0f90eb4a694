#if Configuration
public import Configuration
public import Foundation

#if ConfigurationYAML
import Yams
#endif

/// A place that stacks are read from, such as the environment, with the names of all that is set there.
///
/// A provider of swift-configuration answers for a key, and does not say which keys it has. With the names, a misspelled key
/// is an error instead of a setting that has no effect.
///
/// ```swift
/// let sources: [ConfigurationSource] = [.arguments(), .environment(), try .json(path: "app.json")]
/// ```
public struct ConfigurationSource: Sendable {
  let snapshot: any ConfigSnapshot
  let names: [String]

  /// Creates a source.
  ///
  /// The source is read once. Stacks do not change while a program runs.
  ///
  /// - Parameters:
  ///   - snapshot: The values.
  ///   - names: The names of all values, as `snapshot` encodes keys, such as `stores.sessions.url` in a JSON file and
  ///     `STORES_SESSIONS_URL` in the environment. Others may be among them. A misspelled name that is missing here is
  ///     not noticed.
  public init(_ snapshot: any ConfigSnapshot, names: some Sequence<String>) {
    self.snapshot = snapshot
    self.names = Array(names)
  }

  /// Returns the environment as a source, with names such as `STORES_SESSIONS_CACHED_ENTRIES`.
  ///
  /// ```swift
  /// let source = ConfigurationSource.environment(["STORES_SESSIONS_URL": "sqlite:sessions.sqlite"])
  /// ```
  ///
  /// - Parameter variables: The variables. Defaults to those of the process.
  public static func environment(
    _ variables: [String: String] = ProcessInfo.processInfo.environment
  ) -> ConfigurationSource {
    ConfigurationSource(
      EnvironmentVariablesProvider(environmentVariables: variables).snapshot(), names: variables.keys)
  }

  /// Returns the arguments of a program as a source, with names such as `--stores-sessions-cached-entries`.
  ///
  /// - Parameter arguments: The arguments, the name of the program first. Defaults to those of the process.
  public static func arguments(_ arguments: [String] = CommandLine.arguments) -> ConfigurationSource {
    ConfigurationSource(
      CommandLineArgumentsProvider(arguments: arguments).snapshot(),
      names: arguments.filter { $0.hasPrefix("--") }.map { String($0.prefix { $0 != "=" }) })
  }

  /// Returns a JSON file as a source.
  ///
  /// - Parameter path: The path of a JSON document that is an object with objects in it.
  /// - Throws: `CocoaError` if the file cannot be read; an error of swift-configuration or of Foundation if it is no JSON
  ///   object, or if a value in it is neither a string, a number, a Boolean value nor an array of these.
  public static func json(path: String) throws -> ConfigurationSource {
    try json(Data(contentsOf: URL(filePath: path)), name: path)
  }

  /// Returns a JSON document as a source.
  ///
  /// - Parameters:
  ///   - document: The document, an object with objects in it.
  ///   - name: The name of the source in errors.
  /// - Throws: As ``json(path:)``.
  public static func json(_ document: Data, name: String) throws -> ConfigurationSource {
    let snapshot = try JSONSnapshot(data: document.bytes, providerName: name, parsingOptions: .default)
    let object = try JSONSerialization.jsonObject(with: document) as? [AnyHashable: Any] ?? [:]
    return ConfigurationSource(snapshot, names: names(of: object, in: ""))
  }

  #if ConfigurationYAML
  /// Returns a YAML file as a source.
  ///
  /// It needs the trait `ConfigurationYAML`.
  ///
  /// - Parameter path: The path of a YAML document that is a mapping with mappings in it.
  /// - Throws: `CocoaError` if the file cannot be read; an error of swift-configuration or of Yams if it is no mapping, or
  ///   if a value in it is neither a scalar nor a sequence of these.
  public static func yaml(path: String) throws -> ConfigurationSource {
    let document = try Data(contentsOf: URL(filePath: path))
    let snapshot = try YAMLSnapshot(data: document.bytes, providerName: path, parsingOptions: .default)
    let mapping = try Yams.load(yaml: String(decoding: document, as: UTF8.self)) as? [AnyHashable: Any] ?? [:]
    return ConfigurationSource(snapshot, names: names(of: mapping, in: ""))
  }
  #endif

  private static func names(of members: [AnyHashable: Any], in prefix: String) -> [String] {
    members.flatMap { name, value in
      guard let inner = value as? [AnyHashable: Any] else { return ["\(prefix)\(name)"] }
      // An empty object has no value. Its name lets it be reported instead of ignored.
      return inner.isEmpty ? ["\(prefix)\(name).{}"] : names(of: inner, in: "\(prefix)\(name).")
    }
  }
}
#endif
