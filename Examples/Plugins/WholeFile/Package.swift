// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "WholeFile",
  platforms: [.macOS(.v15)],
  products: [.library(name: "WholeFile", targets: ["WholeFile"])],
  dependencies: [.package(name: "Larder", path: "../../..")],
  targets: [
    .target(
      name: "WholeFile",
      dependencies: [.product(name: "Larder", package: "Larder"), .product(name: "LarderFiles", package: "Larder")]),
    .testTarget(
      name: "WholeFileTests",
      dependencies: [
        "WholeFile", .product(name: "Larder", package: "Larder"), .product(name: "LarderTesting", package: "Larder"),
      ]),
  ]
)
