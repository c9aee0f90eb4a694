#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Where the platform wants an application to keep its data.
enum ApplicationDataFolder {
  /// The folder of this application.
  ///
  /// On Linux it is `$XDG_DATA_HOME/APPLICATION`, and `~/.local/share/APPLICATION` where that variable is not set to an
  /// absolute path (XDG Base Directory Specification, version 0.8); on Apple platforms `Application Support/APPLICATION`
  /// of the user or the app's container, and on tvOS, which lets apps keep nothing else, `Caches/APPLICATION`.
  ///
  /// - Parameters:
  ///   - application: The name of the folder.
  ///   - environment: The variables of the process.
  ///   - home: The user's folder.
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

  /// The user's folder: `HOME` where it is set, as the specification has it, otherwise what the system knows.
  static func home(environment: [String: String]) -> String {
    var home = environment["HOME"] ?? ""
    if !home.hasPrefix("/") { home = URL.homeDirectory.path(percentEncoded: false) }
    while home.hasSuffix("/") { home.removeLast() }
    return home
  }

  /// The folder of this application, by what the process knows of itself.
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
