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

  /// Texts with commas, which the provider of arguments would split into several values, by their names.
  let textsWithCommas: [String: String]

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
    textsWithCommas = [:]
  }

  private init(_ snapshot: any ConfigSnapshot, members: [String: Member]) {
    self.snapshot = snapshot
    names = members.flatMap { $1.names(at: $0) }
    flagNames = Set(members.flatMap { $1.flagNames(at: $0) })
    textsWithCommas = [:]
  }

  private init(arguments: [String]) {
    snapshot = CommandLineArgumentsProvider(arguments: arguments).snapshot()
    var values: [String: [String]] = [:]
    var name: String?
    for argument in arguments.dropFirst() {
      if argument.hasPrefix("--") {
        let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        values[parts[0], default: []] += parts.dropFirst()
        // `--name=value` has no other values.
        name = parts.count == 1 ? parts[0] : nil
      } else if let name {
        values[name, default: []].append(argument)
      }
    }
    names = Array(values.keys)
    flagNames = []
    // Several values of one name are a mistake, which the provider finds.
    textsWithCommas = values.compactMapValues { $0.count == 1 ? $0[0] : nil }.filter { $1.contains(",") }
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
  /// A value is the next argument or follows an equals sign. It may have commas, as the addresses of several hosts have.
  ///
  /// - Parameter arguments: The arguments, the name of the program first. Defaults to those of the process.
  public static func arguments(_ arguments: [String] = CommandLine.arguments) -> ConfigurationSource {
    ConfigurationSource(arguments: arguments)
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
    return ConfigurationSource(snapshot, members: try JSONDecoder().decode([String: Member].self, from: document))
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
    // The decoder merges mappings and the snapshot does not, so a merged setting is one without a value, an error.
    return ConfigurationSource(snapshot, members: try YAMLDecoder().decode([String: Member].self, from: document))
  }
  #endif
}

extension ConfigurationSource: CustomStringConvertible {
  /// The name of the provider, without the values, which can be confidential.
  public var description: String { "ConfigurationSource[\(snapshot.providerName)]" }
}

/// A member of a JSON object or a YAML mapping, of which only the kind and the names are of interest.
private enum Member: Decodable {
  case object([String: Member])
  case flag
  case other

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if let members = try? container.decode([String: Member].self) {
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
