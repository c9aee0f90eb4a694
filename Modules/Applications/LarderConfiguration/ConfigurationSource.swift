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

  /// The names of values that are known to be `true` or `false`, and no numbers.
  let flagNames: Set<String>

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
    flagNames = []
  }

  private init(_ snapshot: any ConfigSnapshot, members: [String: JSONMember]) {
    self.snapshot = snapshot
    names = members.flatMap { $1.names(at: $0) }
    flagNames = Set(members.flatMap { $1.flagNames(at: $0) })
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
    return ConfigurationSource(snapshot, members: try JSONDecoder().decode([String: JSONMember].self, from: document))
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

  #if ConfigurationYAML
  private static func names(of members: [AnyHashable: Any], in prefix: String) -> [String] {
    members.flatMap { name, value in
      guard let inner = value as? [AnyHashable: Any] else { return ["\(prefix)\(name)"] }
      // An empty object has no value. Its name lets it be reported instead of ignored.
      return inner.isEmpty ? ["\(prefix)\(name).{}"] : names(of: inner, in: "\(prefix)\(name).")
    }
  }
  #endif
}

extension ConfigurationSource: CustomStringConvertible {
  /// The name of the provider, without the values, which can be confidential.
  public var description: String { "ConfigurationSource[\(snapshot.providerName)]" }
}

/// A member of a JSON object, of which only the kind and the names are of interest.
private enum JSONMember: Decodable {
  case object([String: JSONMember])
  case flag
  case other

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if let members = try? container.decode([String: JSONMember].self) {
      self = .object(members)
    } else {
      self = (try? container.decode(Bool.self)) == nil ? .other : .flag
    }
  }

  /// Returns the names of the values in the member.
  func names(at name: String) -> [String] {
    guard case .object(let members) = self else { return [name] }
    // An empty object has no value. Its name lets it be reported instead of ignored.
    return members.isEmpty ? ["\(name).{}"] : members.flatMap { $1.names(at: "\(name).\($0)") }
  }

  /// Returns the names of the Boolean values in the member.
  func flagNames(at name: String) -> [String] {
    switch self {
    case .object(let members): members.flatMap { $1.flagNames(at: "\(name).\($0)") }
    case .flag: [name]
    case .other: []
    }
  }
}
#endif
