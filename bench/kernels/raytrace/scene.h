// A ray tracer whose shapes, materials and lights are met through virtual functions of other translation units.
#ifndef SCENE_H
#define SCENE_H

#include "kernel.h"
#include <memory>
#include <vector>

struct Vec {
    double x = 0, y = 0, z = 0;
    Vec operator+(const Vec &o) const { return {x + o.x, y + o.y, z + o.z}; }
    Vec operator-(const Vec &o) const { return {x - o.x, y - o.y, z - o.z}; }
    Vec operator*(double f) const { return {x * f, y * f, z * f}; }
    Vec operator*(const Vec &o) const { return {x * o.x, y * o.y, z * o.z}; }
    double dot(const Vec &o) const { return x * o.x + y * o.y + z * o.z; }
    Vec cross(const Vec &o) const { return {y * o.z - z * o.y, z * o.x - x * o.z, x * o.y - y * o.x}; }
    Vec unit() const { return *this * (1 / __builtin_sqrt(dot(*this))); }
};

struct Ray {
    Vec from, to; // a place and a direction of length 1
    Vec at(double t) const { return from + to * t; }
};

class Material;

struct Hit {
    double distance;
    Vec place, normal;
    const Material *material;
};

// shapes.cpp
class Shape {
public:
    virtual ~Shape();
    // Whether the ray meets it before `hit.distance`; then `hit` is told.
    virtual bool meet(const Ray &ray, Hit &hit) const = 0;
    virtual Vec centre() const = 0;
    virtual double radius() const = 0;
};

std::unique_ptr<Shape> make_sphere(Vec centre, double radius, const Material &material);
std::unique_ptr<Shape> make_triangle(Vec a, Vec b, Vec c, const Material &material);
std::unique_ptr<Shape> make_floor(double height, const Material &material);
// A tree of spheres around its parts.
std::unique_ptr<Shape> make_group(std::vector<std::unique_ptr<Shape>> parts);

// materials.cpp
class Scene;

class Material {
public:
    virtual ~Material();
    virtual Vec colour(const Scene &scene, const Ray &ray, const Hit &hit, int depth) const = 0;
};

std::unique_ptr<Material> make_matt(Vec colour);
std::unique_ptr<Material> make_chequered(Vec one, Vec other);
std::unique_ptr<Material> make_mirror(Vec tint);
std::unique_ptr<Material> make_glass(double index);

// scene.cpp
class Scene {
public:
    Vec trace(const Ray &ray, int depth) const;
    Vec light_at(const Hit &hit) const;
    std::vector<std::unique_ptr<Material>> materials;
    std::vector<std::unique_ptr<Shape>> shapes;
    std::vector<Vec> lamps;
};

extern uint64_t rays_traced, shapes_tried;

#endif
