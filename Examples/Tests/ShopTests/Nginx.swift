import Foundation

/// An nginx in front of several instances, in a folder of its own.
final class Nginx: Sendable {
  let address: String
  private let folder: String
  private let program: String

  /// The path of nginx, or `nil` if it is not installed.
  static let program = ["/usr/sbin/nginx", "/usr/local/bin/nginx", "/opt/homebrew/bin/nginx"]
    .first { FileManager.default.isExecutableFile(atPath: $0) }

  /// Writes the configuration.
  ///
  /// - Throws: ``ShopFailure`` if nginx is not installed.
  init(folder: String, instances: [String]) throws {
    guard let program = Self.program else { throw ShopFailure("nginx is not installed") }
    self.program = program
    self.folder = folder
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let port = try Self.freePort()
    address = "127.0.0.1:\(port)"
    // An instance that is dead or frozen is left out for a moment. A request that may have had an effect is repeated by the
    // client only.
    let servers = instances.map { "    server \($0) max_fails=1 fail_timeout=1s;" }.joined(separator: "\n")
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map { "  \($0)_temp_path \(folder)/\($0);" }
    let text = """
      daemon off;
      worker_processes 1;
      pid \(folder)/pid;
      error_log \(folder)/error.log;
      events {}
      http {
        access_log off;
      \(temporary.joined(separator: "\n"))
        upstream shop {
      \(servers)
        }
        server {
          listen \(address);
          location / {
            proxy_pass http://shop;
            proxy_connect_timeout 1s;
            proxy_read_timeout 3s;
          }
        }
      }

      """
    try Data(text.utf8).write(to: URL(filePath: folder + "/nginx.conf"))
  }

  /// Returns a port that no program uses now.
  private static func freePort() throws -> UInt16 {
    #if canImport(Darwin)
    let descriptor = socket(AF_INET, SOCK_STREAM, 0)
    #else
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    #endif
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = in_addr_t(INADDR_LOOPBACK).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isBound = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, length) == 0 && getsockname(descriptor, $0, &length) == 0
      }
    }
    guard isBound else { throw ShopFailure("no port is free") }
    return UInt16(bigEndian: address.sin_port)
  }

  func start() throws {
    let process = Process()
    process.executableURL = URL(filePath: program)
    process.arguments = ["-p", folder, "-c", folder + "/nginx.conf"]
    process.standardError = FileHandle.nullDevice
    try process.run()
  }

  func stop() {
    guard let text = try? String(contentsOfFile: folder + "/pid", encoding: .utf8),
      let process = pid_t(text.trimmingCharacters(in: .whitespacesAndNewlines))
    else { return }
    kill(process, SIGTERM)
  }
}
