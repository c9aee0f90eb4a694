import Foundation

/// The folder where the platform expects an application to store its data.
enum ApplicationDataFolder {
  /// Returns the data folder of an application.
  ///
  /// On Linux, this is `$XDG_DATA_HOME/APPLICATION`, or `~/.local/share/APPLICATION` if that variable is not an
  /// absolute path (XDG Base Directory Specification, version 0.8). On Apple platforms, it is
  /// `Application Support/APPLICATION` of the user or of the app's container. On tvOS, where apps can store nothing
  /// else, it is `Caches/APPLICATION`.
  ///
  /// - Parameters:
  ///   - application: The name of the folder.
  ///   - environment: The environment variables of the process.
  ///   - home: The user's home folder.
  static func path(application: String, environment: [String: String], home: String) -> String {
    #if os(tvOS)
    return "\(home)/Library/Caches/\(application)"
    #elseif canImport(Darwin)
    return "\(home)/Library/Application Support/\(application)"
    #else
    if let data = environment["XDG_DATA_HOME"], data.hasPrefix("/") { return "\(data)/\(application)" }
    return "\(home)/.local/share/\(application)"
    #endif
  }

  /// Returns the user's home folder: `HOME` if it is set, as the specification requires, otherwise the folder known to
  /// the system.
  static func home(environment: [String: String]) -> String {
    var home = environment["HOME"] ?? ""
    if !home.hasPrefix("/") { home = URL.homeDirectory.path(percentEncoded: false) }
    while home.hasSuffix("/") { home.removeLast() }
    return home
  }

  /// The data folder of this application, derived from the current process.
  static var current: String {
    let process = ProcessInfo.processInfo
    #if canImport(Darwin)
    let application = Bundle.main.bundleIdentifier ?? process.processName
    #else
    let application = process.processName
    #endif
    return path(
      application: application, environment: process.environment, home: home(environment: process.environment))
  }
}
