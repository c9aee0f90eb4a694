// swift-tools-version: 6.2

import PackageDescription

// The program with which `Scripts/peers` writes through other Swift libraries. It has a package of its own, so that no test builds
// it.
let package = Package(
  name: "Peers",
  platforms: [.macOS(.v15)],
  dependencies: [.package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0")],
  targets: [
    .executableTarget(name: "PeerWriter", dependencies: [.product(name: "GRDB", package: "GRDB.swift")])
  ]
)
