// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "Watched",
  platforms: [.macOS(.v15)],
  products: [.library(name: "Watched", targets: ["Watched"])],
  dependencies: [.package(name: "Larder", path: "../../..")],
  targets: [
    .target(name: "Watched", dependencies: [.product(name: "Larder", package: "Larder")]),
    .testTarget(
      name: "WatchedTests",
      dependencies: [
        "Watched", .product(name: "Larder", package: "Larder"), .product(name: "LarderExpiry", package: "Larder"),
        .product(name: "LarderObservation", package: "Larder"), .product(name: "LarderTesting", package: "Larder"),
      ]),
  ]
)
